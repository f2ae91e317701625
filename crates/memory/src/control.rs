//! The control page: the words of a region that change while it is served.
//!
//! Promise: any bytes at all are a valid control page to read; every change is one aligned store.
//! Never: is trusted after an attach: `region` checks marks and roster word before using them.
//!
//! Byte table: FORMAT.md, "Control page".

use std::mem::offset_of;

use crate::atomics::{AtomicU32, AtomicU64};
use crate::lock::Lock;
use crate::marks::{Line, MarkWords};

/// Bytes of the superblock's page, of every section's alignment, and of a block for direct I/O.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// How many shared words a region has for its user's counters and status.
pub const WORDS: usize = 64;

/// What a reader that cannot go on says in a word, as an error number: this memory has damaged what
/// nothing else has whole. No file system says that of itself.
pub const MEMORY_DAMAGED: i32 = 131;

/// Bytes of the control page.
pub(crate) const CONTROL_BYTES: u64 = 4096;

/// What changes rarely: on attach, on reset, and when the roster is written.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Notes {
    /// The process that serves the region, for messages only.
    pub(crate) server_pid: AtomicU32,
    /// 1 while a reset is under way; the next attach finishes it.
    pub(crate) reset_pending: AtomicU32,
    /// Where the reset puts all three marks.
    pub(crate) reset_lsn: AtomicU64,
    /// Which half of the roster counts, how much of it, and a check (see `roster`).
    pub(crate) roster_published: AtomicU64,
    /// On a medium that a start of the system may not spare: during which run of the system it was
    /// attached last.
    pub(crate) boot: [AtomicU64; 2],
    /// The highest term that it was attached in, where hosts have terms.
    pub(crate) term: AtomicU64,
}

/// The control page as it lies in the region.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ControlPage {
    pub(crate) marks: MarkWords,
    pub(crate) lock: Line<Lock>,
    pub(crate) notes: Line<Notes>,
    pub(crate) words: Line<[AtomicU64; WORDS]>,
}

const _: () = assert!(size_of::<ControlPage>() as u64 <= CONTROL_BYTES);

/// The fields of the page: name, bytes from the start of the region, size in bytes.
pub(crate) const FIELDS: [(&str, usize, usize); 11] = {
    let page = PAGE_BYTES as usize;
    let marks = page + offset_of!(ControlPage, marks);
    let notes = page + offset_of!(ControlPage, notes);
    let [released, durable, tail] = MarkWords::OFFSETS;
    [
        (released.0, marks + released.1, 8),
        (durable.0, marks + durable.1, 8),
        (tail.0, marks + tail.1, 8),
        ("lock", page + offset_of!(ControlPage, lock), size_of::<Lock>()),
        ("server_pid", notes + offset_of!(Notes, server_pid), 4),
        ("reset_pending", notes + offset_of!(Notes, reset_pending), 4),
        ("reset_lsn", notes + offset_of!(Notes, reset_lsn), 8),
        ("roster_published", notes + offset_of!(Notes, roster_published), 8),
        ("boot", notes + offset_of!(Notes, boot), 16),
        ("term", notes + offset_of!(Notes, term), 8),
        ("words", page + offset_of!(ControlPage, words), 8 * WORDS),
    ]
};
