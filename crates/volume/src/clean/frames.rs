//! Frames as windows take them: what is in one, and how many one window has.
//!
//! Promise: a record is told as it was logged, and where its data lies.
//! Never: makes sense of what no version of Holdfast writes.

use holdfast_io::{Files, InodeNumbers};
use holdfast_log::Lsn;

use super::error::CleanError;
use super::plan::Window;
use crate::record::{self, Record};

/// Bytes of log in one window, and of what the home has to do for it beyond them: enough to be
/// worth its syncs, not so much that a front end that takes over, and finishes the window first, is
/// long about it.
const WINDOW_BYTES_MAX: u64 = 16 << 20;

/// The log of a window is at most this part of the ring: its room comes back when all of it is
/// home, and meanwhile whoever waits for room must find some.
const WINDOW_PART: u64 = 4;

/// Files and directories of one window on a home that syncs each of them: a second's work where a
/// sync takes some milliseconds.
const SYNCS_MAX: usize = 128;

/// The records of a frame, each with the LSN of its data.
pub(crate) fn decode(
    lsn: Lsn,
    payload: &[u8],
    payload_lsn: Lsn,
) -> Result<Vec<(Record<'_>, Lsn)>, CleanError> {
    record::decode(payload)
        .map(|decoded| {
            let (record, data_at) = decoded.map_err(|fault| CleanError::Record(lsn, fault))?;
            Ok((record, payload_lsn.advance(data_at as u64)))
        })
        .collect()
}

/// The records of a frame that is about to be logged, without data.
pub(crate) fn decode_names(payload: &[u8]) -> Vec<(Record<'_>, Lsn)> {
    let whole = record::decode(payload).map(|decoded| decoded.expect("it was encoded here"));
    whole.map(|(record, _)| (record, Lsn::default())).collect()
}

/// How much one window has at the most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowMax {
    log_bytes: u64,
    /// Files and directories.
    syncs: usize,
}

impl WindowMax {
    /// For a home, and a ring of this length, if that is known.
    pub(crate) fn of(home: &dyn Files, ring_bytes: Option<u64>) -> WindowMax {
        let part = ring_bytes.map_or(WINDOW_BYTES_MAX, |ring| ring / WINDOW_PART);
        let syncs = if home.has_sync_all() { usize::MAX } else { SYNCS_MAX };
        WindowMax { log_bytes: part.min(WINDOW_BYTES_MAX), syncs }
    }

    /// True if a window that began there takes no frame at `lsn`, whatever is in it.
    pub(super) fn is_reached(&self, window: &Window, begins: Lsn, lsn: Lsn) -> bool {
        lsn > begins.advance(self.log_bytes)
            || window.unlogged_bytes >= WINDOW_BYTES_MAX
            || window.syncs() >= self.syncs
    }
}

/// True if names that change places any number of times are one step.
pub(crate) fn tells_inodes(home: &dyn Files) -> bool {
    matches!(home.inode_numbers(), InodeNumbers::Kept(_))
}
