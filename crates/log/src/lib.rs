//! A write-ahead log: a ring in a region, segments on a disk.
//!
//! Promise: a frame is stable when `append` returns (the region has it) and durable when `commit`
//! does (the device has it); after any crash the log is a prefix of what was appended, never
//! shorter than what was durable, never with a hole; damage to durable bytes is reported by
//! position and never cut off as if it were the end.
//! Never: starts a thread, but for a few that read ahead of a long reader and end with it; knows
//! what a record means; retries a failed write or sync.
//!
//! Where to look: `log` is what a user calls, `state` what an open log is made of, `outcome` what a
//! call comes to. `create` makes a log; `open` takes one into use, from the ring or, by `recovery`,
//! from its segments (`load` reads the files, `opening` is what it works with, `found` what a scan
//! tells it). `commit_log` is what a user does with a log, wherever that stands: `writer` appends
//! (`pads` fill blocks), `drain` makes durable (`progress` is what its threads share, `waiters` are
//! who asked for it, `rate` is how fast), `frames` reads the ring, `cursor` and `back` the device
//! (`window` has what they have in memory, `ahead` their threads). `truncate` cuts off the end
//! (`cut` is on the device, `cuts` tells readers). `notes` is what its users keep beside it.
//! `prepare` works ahead, at a `pace` that leaves the device to others; `owner` is for the threads
//! that drain and prepare. `segment` (of a `shape`), `segments` and `catalogue` are the files,
//! `needs` how far the log is as they have to say it, `words` what outlives the process in the
//! region.
//! `mend` and `again` are for a device that failed, `give` and `lacking` for one that lost what the
//! ring has; `stripe` and `parity` are for one that damaged what it had, with `rebuild` to give it
//! back and `policy` to say what an open does. `verify` and `check` look without opening, `foresee`
//! says what an open would find, `watch` reads what others write, and `repair` makes a new log of a
//! damaged one, of which `salvage` finds the segments.

// The models in tests/ include the modules they check by path.
#![cfg(not(model))]

mod again;
mod ahead;
mod back;
mod buffer;
mod bytes;
mod catalogue;
mod check;
mod commit_log;
mod config;
mod create;
mod cursor;
mod cut;
mod cuts;
mod damaged;
mod display;
mod drain;
mod error;
mod foresee;
mod found;
mod frames;
mod give;
mod healed;
mod lacking;
mod left;
mod load;
mod log;
mod mend;
mod needs;
mod notes;
mod older;
mod open;
mod opening;
mod orderings;
mod outcome;
mod owner;
mod pace;
mod pads;
mod parity;
mod policy;
mod prepare;
mod progress;
mod range;
mod rate;
mod rebuild;
mod recovery;
mod refill;
mod remake;
mod repair;
mod rest;
mod salvage;
mod segment;
mod segments;
mod shape;
mod spans;
mod state;
mod stripe;
mod sync;
mod truncate;
mod unapplied;
mod verify;
mod waiters;
mod watch;
mod whose;
mod window;
pub mod words;
mod writer;

pub use back::BackCursor;
pub use check::{CheckedMarks, CheckedRing};
pub use commit_log::{CommitLog, WordError};
pub use config::{
    LogConfig, Parity, Policy, Retention, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SEGMENTS_MAX,
    Scanned,
};
pub use cursor::{Cursor, CursorError};
pub use error::NoteError;
pub use error::{
    AppendError, CommitError, ConfigFault, CreateError, FileFault, OpenError, ReadError,
    RemakeError, RepairError, TruncateError,
};
pub use foresee::Foreseen;
pub use frames::{Frame, Frames, FramesIter};
pub use holdfast_core::Lsn;
pub use holdfast_core::frame::{FLAG_COMPRESSED, FLAG_SEALED, FrameHeader, Kind, NUMBER_BYTES};
pub use notes::Noter;
pub use outcome::{
    Appended, Contents, Drained, Health, Marks, Mended, Recovery, Source, Spoilt, Verdict,
};
pub use range::Stretch;
pub use repair::{RepairEvent, Repaired};
pub use segment::is_segment_name;
pub use state::Log;
pub use verify::{CheckVerdict, Damage, FilePlace, Verified, VerifiedParity, Walked};
pub use watch::Watch;

#[cfg(test)]
mod tests;
