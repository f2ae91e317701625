//! A write-ahead log: a ring in a region, segments on a disk.
//!
//! Promise: a frame is stable when `append` returns (the region has it) and durable when `commit`
//! does (the device has it); after any crash the log is a prefix of what was appended, never
//! shorter than what was durable, never with a hole; damage to durable bytes is reported by
//! position and never cut off as if it were the end.
//! Never: starts a thread, but for a few that read ahead of a long reader and end with it; knows
//! what a record means; retries a failed write or sync.
//!
//! Where to look: `log` is what a user calls, `commit_log` what it does with a log, wherever that
//! stands; `state` is what an open log is made of, `outcome` what a call comes to, `notes` what
//! its users keep beside it, `words` what outlives the process in the region. `owner` is for the
//! threads that drain and prepare. Then there are rooms:
//!
//! * `append`: `writer` appends, `drain` makes durable (`progress` is what its threads share,
//!   `waiters` are who asked for it, `rate` is how fast), and `needs` is how far the log is as its
//!   files have to say it.
//! * `segments`: the files, each a `segment`; `prepare` works ahead, at a `pace` that leaves the
//!   device to others; `cut` takes the end off; `parity` is for a device that damages what it has,
//!   with `reconstruct` to give it back.
//! * `format`: what stands in them: the `catalogue`, the `shape` of a segment, its `stripe`s, the
//!   `pads` that fill blocks, `whose` it is.
//! * `read`: `frames` reads the ring, `cursor` and `back` the device (`window` has what they have
//!   in memory, `ahead` their threads), `spans` all of it; `cuts` tells them of an end that was
//!   cut off, `watch` reads what others write, `healed` what memory damaged.
//! * `open`: takes a log into use, from the ring or, by `recovery`, from its segments (`load`
//!   reads the files, `opening` is what it works with, `found` what a scan tells it, `policy` what
//!   is done about damage). `create` makes one. `mend` and `again` are for a device that failed,
//!   `give` and `lacking` for one that lost what the ring has. `check` and `foresee` look without
//!   opening, and `truncate` cuts off the end.
//! * `repair`: makes a new log of a damaged one, of which `salvage` finds the segments; `verify`
//!   looks at one, and `remake` makes one again whose files are gone.

// The models in tests/ include the modules they check by path.
#![cfg(not(model))]

mod append;
mod commit_log;
mod config;
mod display;
mod error;
mod format;
mod log;
mod notes;
mod open;
mod orderings;
mod outcome;
mod owner;
mod range;
mod read;
mod repair;
mod rest;
mod segments;
mod state;
mod sync;
pub mod words;

pub use commit_log::{CommitLog, WordError};
pub use config::{
    LogConfig, Parity, Policy, RING_BYTES_MAX, Retention, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN,
    SEGMENTS_MAX, Scanned,
};
pub use error::NoteError;
pub use error::{
    AppendError, CommitError, ConfigFault, CreateError, FileFault, OpenError, ReadError,
    RemakeError, RepairError, TruncateError,
};
pub use holdfast_core::Lsn;
pub use holdfast_core::frame::{FLAG_COMPRESSED, FLAG_SEALED, FrameHeader, Kind, NUMBER_BYTES};
pub use notes::Noter;
pub use open::check::{CheckedMarks, CheckedRing};
pub use open::foresee::Foreseen;
pub use outcome::{
    Appended, Contents, Drained, Health, Marks, Mended, Recovery, Source, Spoilt, Verdict,
};
pub use range::LsnRange;
pub use read::back::BackCursor;
pub use read::cursor::{Cursor, CursorError};
pub use read::frames::{Frame, Frames, FramesIter};
pub use read::watch::Watch;
pub use repair::verify::{CheckVerdict, Damage, FilePlace, Verified, VerifiedParity, Walked};
pub use repair::{RepairEvent, Repaired};
pub use segments::segment::is_segment_name;
pub use state::Log;

#[cfg(test)]
mod tests;
