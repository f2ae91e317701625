//! The limits that several files share.
//!
//! Promise: limits that must fit into each other do.
//! Never: a limit of one file alone.

use crate::once::NUMBER_BYTES;

/// The most bytes of an answer.
pub const ANSWER_BYTES_MAX: usize = (1 << 20) - NUMBER_BYTES;

/// The most bytes of a row, as requests and answers have it.
pub const ROW_BYTES_MAX: usize = 512 << 10;

/// Bytes of rows behind which a scan ends, though there may be more.
pub const SCAN_BYTES_MAX: usize = 256 << 10;

/// The most bytes of rows, and of entries of indexes, that a request has read and written: so many,
/// or [`TOUCHED_PER_BYTE`] times its own bytes if that is more. A few bytes name a large row.
pub const TOUCHED_BYTES_MAX: usize = 64 << 20;

/// What a request's own bytes may come to: a row, its entries in all indexes, and those before.
pub const TOUCHED_PER_BYTE: usize = 32;

/// What a request of so many bytes may have read and written.
pub(crate) fn touched_bytes_max(request_bytes: usize) -> usize {
    TOUCHED_BYTES_MAX.max(request_bytes.saturating_mul(TOUCHED_PER_BYTE))
}

// What a scan answers has room.
const _: () = assert!(SCAN_BYTES_MAX + ROW_BYTES_MAX + 64 <= ANSWER_BYTES_MAX);

/// How often a request is tried beside others that are in its way, before it is tried alone.
pub(crate) const ATTEMPTS_BESIDE_OTHERS: u32 = 10;

/// Entries that nobody needs, and that go in one transaction.
pub(crate) const SWEPT_AT_ONCE: usize = 256;
