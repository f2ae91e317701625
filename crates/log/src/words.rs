//! Which shared word of the region means what to a log.
//!
//! Words 0..16 are the log's; a volume has those from 16 on. All are written with relaxed order and
//! stand alone, except [`GENERATION`], which says that the rest of the region is whole.
//!
//! Promise: one list, read by the log, by `status`, and by whoever takes over from a dead process.
//! Never: reuses a number for another meaning.

/// Generation of the last open with this region; 0 while the ring is not (or not yet) the log.
pub const GENERATION: usize = 0;
/// 0, or 1 + the `errno` (0 if there is none) of the failure that poisoned the log.
pub const POISON: usize = 1;
/// The attach that has the log open (region generation), or 0.
pub const OPENER: usize = 2;
/// Position in the newest mark: what `release` may go up to.
pub const MARKED: usize = 3;
/// End of the newest frame of data or mark of a reader.
pub const NEWEST_END: usize = 4;
/// Highest watermark that is itself on the device.
pub const COVERED: usize = 5;
/// Bytes drained, in all.
pub const DRAINED_BYTES: usize = 6;
/// Drains completed.
pub const DRAINS: usize = 7;
/// Segment syncs completed.
pub const SYNCS: usize = 8;
/// Bytes a second while draining, over the last 64 MiB or so.
pub const DRAIN_RATE: usize = 9;
/// Frames appended, without pads.
pub const FRAMES: usize = 10;
/// Segments prepared off the commit path.
pub const PREPARED: usize = 11;
/// Segments that a drain had to prepare itself.
pub const PREPARED_LATE: usize = 12;
/// Segments prepared and not yet reached.
pub const READY: usize = 13;
/// Times an append was refused because the ring was full or too much was dirty.
pub const REFUSALS: usize = 14;
/// 0, or 1 + the `errno` (0 if there is none) of why no segment could be prepared, or nothing be
/// written to the catalogue, when that was tried last.
pub const UNPREPARED: usize = 15;
/// Frames that memory had damaged and that were taken from the log's disk instead.
pub const HEALED: usize = 16;
/// First word that is not the log's.
pub const END: usize = 17;
/// The words of the log's reader, see [`crate::CommitLog`].
pub const READER: std::ops::Range<usize> = END..SERVER.start;
/// The words of a server that has the log for other processes.
pub const SERVER: std::ops::Range<usize> = 56..holdfast_memory::WORDS;
