//! The one door to the machine.
//!
//! Promise: whatever Holdfast does to a disk, reads from a clock, or draws as entropy goes through
//! one of the traits here, so that it can be done for real ([`real`]) or against a machine that
//! tears, reorders, loses, corrupts and fails, all from one seed (`fake`).
//! Never: knows what the bytes mean.

mod blocks;
pub mod checksum;
mod clock;
mod entropy;
#[cfg(feature = "fake")]
pub mod fake;
mod files;
mod one_file;
mod path;
pub mod real;

pub use blocks::{Blocks, BlocksError, Receiving, SendError, Sending};
pub use clock::Clock;
pub use entropy::Entropy;
pub use files::{Change, DirEntry, Files, Kind, Metadata, OpenFile, OpenHow, Space};
pub use one_file::OneFile;
