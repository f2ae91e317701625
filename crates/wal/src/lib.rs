//! A typed write-ahead log to embed in a program.
//!
//! Promise: a record is durable when its ticket resolves or `commit` returns, and then every later
//! replay yields it, in order, unchanged, or says where the device lost it; a set of records is
//! there as a whole or not at all; of two programs, one has the log.
//! Never: starts a thread it was not asked for; takes damage for the end; guesses a record.
//!
//! It is for a program that keeps its state in memory, or in files of its own, and wants to get it
//! back after a crash: what happens is appended, and replayed when the program starts; what is safe
//! elsewhere is given up by a checkpoint. It is not for looking records up by a key (that is
//! `holdfast-store`), nor for several programs that write one log (that is the server).
//!
//! ```
//! use holdfast_wal::{Log, Options, Record, format::MessagePack};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! enum Event { Came(String), Left(String) }
//!
//! impl Record for Event {
//!     const NAME: &'static str = "door.event"; // a log of something else is refused by name
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let directory = place.path().join("log");
//! let open = || Log::<Event, MessagePack>::open_or_create(&directory, &Options::default());
//! let (log, _) = open()?;
//! log.append(&Event::Came("Ada".into()))?; // in memory, at once
//! let both = [Event::Came("Grace".into()), Event::Left("Ada".into())];
//! log.append_all(&both)?.wait()?; // both or neither; on the disk now, as all before them
//! drop(log); // as well as a crash
//!
//! let (log, _) = open()?;
//! let (mut inside, mut applied) = (std::collections::BTreeSet::new(), None);
//! for entry in log.iter() {
//!     let entry = entry?; // or where the device damaged it
//!     applied = Some(entry.end);
//!     match entry.record {
//!         Event::Came(name) => inside.insert(name),
//!         Event::Left(name) => inside.remove(&name),
//!     };
//! }
//! assert_eq!(inside.into_iter().collect::<Vec<_>>(), ["Grace"]);
//! // Had this been written elsewhere, and synced, the log would not be needed up to here.
//! log.checkpoint(applied.expect("there are records"))?;
//! # Ok(())
//! # }
//! ```
//!
//! | what | how much |
//! |---|---|
//! | bytes of a set, encoded | half a segment, and at most 4 MiB: [`Stat::set_bytes_max`] |
//! | records in a set | 65,535 |
//! | bytes of a segment file | a power of two, 64 KiB to 1 GiB; 16 MiB unless said otherwise |
//! | segment files | 65,536: with 16 MiB each, 1 TiB between checkpoint and end |
//! | positions ([`Lsn`]), in bytes | 2^62, never used twice |
//! | openings | some two thousand million |
//! | memory | the ring (32 MiB, or two segments if they are larger), and 8 MiB a reader |
//! | disk | what lies behind the checkpoint, three segments more, and 120 KiB |
//! | openers of a directory | one; readers through [`Watch`] besides |
//!
//! A log without threads of its own ([`Background::None`], the default) does all work in the calls
//! that need it. It runs on Linux alone, on any file system whose `fsync` keeps its promise; where
//! that can bypass the page cache, it does. Errors name the file and what was tried with it.
//!
//! A log belongs to the process that opened it. What that process forks without starting another
//! program may read what was durable at the fork; whatever would change the log is refused, with
//! the log's failure and an error of the kind `PermissionDenied`, and dropping the log does
//! nothing. The parent goes on as if there were no child. A child that is to log opens a log of its
//! own, or this one once its parent has closed it; where a parent is killed, its directory is
//! [`OpenError::InUse`] for as long as a child has a copy of the log.
//!
//! The design is the operation replay log of "Design and Reliability of a User Space Write-Ahead
//! Log in Rust" (section IV): `write` and an iterator over any serde type, in JSON or MessagePack.
//! What it adds: sets, group commit, tickets, checkpoints, followers, and an end of the log that
//! can be told from damage.
//!
//! Where to look: [`Log`] is all of it. [`Ticket`] waits (`sleepers` has the tasks, `background`
//! the threads), `format` turns records into bytes, `payload` puts them into a set and `wrapping`
//! that into a frame, by way of `compression` and `sealing`. `open` makes and opens a log, and
//! tells of the `recovery`; its `label` says of what, and by `key_mark` under whose key, `any`
//! knows no type but the `record_type` of the label, and `opened_keys` finds a key that is wrong;
//! `survey` looks at a log that is not open, and repairs one, and `outline` says what everybody
//! may know of it. `read` has `replay`, `back` and `tail`, and `watch` for a log that somebody
//! else has open. Below lies `holdfast-log`, which knows frames, segments and recovery.

#[cfg_attr(not(any(feature = "lz4", feature = "seal")), allow(dead_code))]
mod aligned;
mod background;
mod compression;
mod error;
pub mod format;
#[cfg(feature = "json")]
pub mod json_lines;
mod key_mark;
mod log;
mod open;
mod options;
mod payload;
mod place;
mod read;
mod record;
#[cfg(feature = "seal")]
mod sealing;
#[cfg(not(feature = "seal"))]
#[path = "unsealed.rs"]
mod sealing;
mod shared;
mod sleepers;
mod ticket;
mod wrapping;

pub use compression::Compression;
pub use error::{
    AppendError, CheckpointError, CommitError, CreateError, LabelFault, OpenError, RepairError,
    ReplayError, TruncateError,
};
pub use holdfast_log::{
    CheckVerdict, ConfigFault, Damage, FileFault, FilePlace, Lsn, LsnRange, Parity, Policy,
    Scanned, Spoilt, Verified, VerifiedParity, Walked,
};
pub use log::{Log, Stat};
pub use open::outline::{Outline, outline};
pub use open::record_type::RecordType;
pub use open::recovery::Recovery;
pub use open::survey::{BrokenSet, Repaired, repair, repair_at, verify, verify_at};
pub use options::{Background, Options};
pub use place::Place;
pub use read::back::ReplayBack;
pub use read::replay::{Entry, Replay};
pub use read::tail::Tail;
pub use read::watch::Watch;
pub use record::Record;
#[cfg(feature = "seal")]
pub use sealing::{Keys, KeysFault, Padding};
pub use ticket::{Awaited, Ticket};

#[cfg(test)]
mod tests;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/choose.md")]
struct Choose;
