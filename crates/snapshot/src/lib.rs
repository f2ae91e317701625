//! Snapshots of machines: their memory, and their disks at one instant.
//!
//! Promise: a snapshot is there whole or not at all, whoever dies while it is made; its disks are
//! those of one instant; what is read of it is what was put there, or is refused as damaged. A
//! restore that was begun is finished before the disks are used.
//! Never: knows what a machine's memory means; starts a thread; panics at bytes, wherever they come
//! from.
//!
//! Where to look: `request` is what is asked and answered. `snapshots` does it: `draft` is a
//! snapshot that is being made, `disks` takes and restores disks, `state` has what is known of
//! both, `directory` names the snapshots that are there, and is written last. `pages` says where
//! the pages of an image are and what they must be, `store` has them in blocks, `space` knows which
//! blocks are free. `source` is a disk that is copied.

mod directory;
mod disks;
mod draft;
mod error;
mod pages;
mod request;
mod snapshots;
mod source;
mod space;
mod state;
mod store;

pub use directory::STORE_BYTES_MIN;
pub use error::{OpenError, Refusal, RespondError};
pub use pages::is_zeros;
pub use request::{
    Answer, Image, ImageKind, Malformed, NewImage, PIECE_BYTES_MAX, Request, Snapshot,
};
pub use snapshots::Snapshots;
pub use source::Source;

/// The byte tables of snapshots, as FORMAT.md in this crate prints them and a test compares them.
pub const FORMAT: &str = include_str!("../FORMAT.md");
