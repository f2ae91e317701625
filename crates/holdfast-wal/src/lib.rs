//! A typed write-ahead log to embed in a program.
//!
//! Promise: a record is durable when its ticket resolves or `commit` returns, and then every later
//! replay yields it, in order, unchanged, or says where the device lost it; a set of records is
//! there as a whole or not at all; of two programs, one has the log.
//! Never: starts a thread it was not asked for; takes damage for the end; guesses a record.
//!
//! The design is the operation replay log of "Design and Reliability of a User Space Write-Ahead
//! Log in Rust" (section IV): `write` and an iterator over any serde type, in JSON or MessagePack.
//! What it adds: sets, group commit, tickets, checkpoints, followers, and an end of the log that
//! can be told from damage.
//!
//! Where to look: [`Log`] is all of it. `open` makes and opens one, `label` says of what;
//! [`Ticket`] waits (`sleepers` has the tasks, `background` the threads), `replay`, `back` and
//! `tail` read, `format` turns records into bytes, `payload` puts them into a set and `wrapping`
//! that into a frame, by way of `compression` and `sealing`. `survey` looks at a log that is not
//! open, and repairs one; `watch` reads one that somebody else has open. Below lies
//! `holdfast-log`, which knows frames, segments and recovery.

#[cfg_attr(not(any(feature = "lz4", feature = "seal")), allow(dead_code))]
mod aligned;
mod any;
mod back;
mod background;
mod compression;
mod error;
pub mod format;
#[cfg(feature = "json")]
pub mod json_lines;
mod label;
mod log;
mod open;
mod options;
mod payload;
mod place;
mod record;
mod replay;
#[cfg(feature = "seal")]
mod sealing;
#[cfg(not(feature = "seal"))]
#[path = "unsealed.rs"]
mod sealing;
mod shared;
mod sleepers;
mod survey;
mod tail;
mod ticket;
mod watch;
mod wrapping;

pub use any::RecordType;
pub use back::ReplayBack;
pub use compression::Compression;
pub use error::{
    AppendError, CheckpointError, CommitError, CreateError, LabelFault, OpenError, RepairError,
    ReplayError, TruncateError,
};
pub use holdfast_log::{
    CheckVerdict, ConfigFault, Damage, FileFault, FilePlace, Lsn, Parity, Policy, Scanned, Stretch,
    Verified, VerifiedParity, Walked,
};
pub use log::{Log, Stat};
pub use open::Recovery;
pub use options::{Background, Options};
pub use place::Place;
pub use record::Record;
pub use replay::{Entry, Replay};
#[cfg(feature = "seal")]
pub use sealing::{Keys, KeysFault, Padding};
pub use survey::{BrokenSet, Outline, Repaired, outline, repair, repair_at, verify, verify_at};
pub use tail::Tail;
pub use ticket::Ticket;
pub use watch::Watch;

#[cfg(test)]
mod tests;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
