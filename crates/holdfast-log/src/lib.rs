//! A write-ahead log: a ring in a region, segments on a disk.
//!
//! Promise: a frame is stable when `append` returns (the region has it) and durable when `commit`
//! does (the device has it); after any crash the log is a prefix of what was appended, never
//! shorter than what was durable, never with a hole; damage to durable bytes is reported by
//! position and never cut off as if it were the end.
//! Never: starts a thread, knows what a record means, retries a failed write or sync.

mod buffer;
mod catalogue;
mod config;
mod create;
mod display;
mod drain;
mod error;
mod frames;
mod log;
mod mend;
mod open;
mod prepare;
mod recovery;
mod segment;
mod segments;
pub mod words;
mod writer;

pub use config::{LogConfig, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SEGMENTS_MAX};
pub use error::{AppendError, CommitError, ConfigFault, CreateError, FileFault, OpenError};
pub use frames::{Frame, Frames, FramesIter};
pub use holdfast_core::Lsn;
pub use holdfast_core::frame::{FrameHeader, Kind};
pub use log::{Appended, Drained, Health, Log, Marks, Mended, Recovery, Source, Verdict};

#[cfg(test)]
mod tests;
