//! The one door to the machine.
//!
//! Promise: whatever Holdfast does to a disk, reads from a clock, or draws as entropy goes through
//! one of the traits here, so that it can be done for real ([`real`]) or against a machine that
//! tears, reorders, loses, corrupts and fails, all from one seed (`fake`).
//! Paths from outside, which lie above what those traits see, go through [`private`]; what goes on
//! of other processes, [`process`] knows, and [`Opener`] whether this one is who opened something.
//! What strangers named is printed through [`Shown`], and
//! what fails says its name through [`Named`]. What front ends ask of a disk is [`Blocks`], and of
//! a file tree [`tree::Tree`].
//! Never: knows what the bytes mean.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "Holdfast runs on Linux alone: what it promises of disks and memory rests on calls that other \
     systems do not have (openat2, pwritev2 with RWF_DSYNC, futexes, sealed memfds)"
);

pub mod acl;
mod blocks;
pub mod checksum;
mod clock;
mod entropy;
#[cfg(feature = "fake")]
pub mod fake;
mod files;
mod named;
mod one_file;
mod opener;
mod path;
pub mod private;
pub mod process;
pub mod real;
mod shown;
pub mod tree;

pub use blocks::{Blocks, BlocksError, Extent, Receiving, SendError, Sending};
pub use clock::Clock;
pub use entropy::Entropy;
pub use files::{
    Allocation, Change, DirEntry, Files, Held, InodeNumbers, Kind, Limits, Metadata, OpenFile,
    OpenHow, Seek, Space, Traits, XATTR_NAME_BYTES_MAX, XATTR_VALUE_BYTES_MAX,
};
pub use named::{Named, errno, named, unnamed};
pub use one_file::OneFile;
pub use opener::Opener;
pub use shown::Shown;
