//! The records in the payload of a frame.
//!
//! Byte table: FORMAT.md, "Payload".
//!
//! A set of one record is that record: the check of its frame is the record's. Each of several has
//! a check of its own, which covers its length, too, for when their frame is found damaged.
//!
//! Promise: out of a whole payload, each record is taken that was put, and none that was not; each
//! begins at a multiple of 8, which is what a record read in place needs.
//! Never: knows a format; checks once more what its frame has been checked for.

use std::ops::Range;

use holdfast_io::checksum::crc32c;

/// What precedes a record of several: u32 length, u32 check.
pub(crate) const HEAD_BYTES: usize = 8;
/// Records begin at multiples of this.
const ALIGN: usize = 8;

/// Starts a record of several at the end of `payload`; [`finish`] is told what this returns.
pub(crate) fn begin(payload: &mut Vec<u8>) -> usize {
    let start = payload.len();
    payload.extend_from_slice(&[0; HEAD_BYTES]);
    start
}

/// Ends the record that was begun at `start`. One that is too long for its length to be told is too
/// long for any frame, and goes no further than to be refused.
pub(crate) fn finish(payload: &mut Vec<u8>, start: usize) {
    let length = u32::try_from(payload.len() - start - HEAD_BYTES).unwrap_or(u32::MAX);
    let check = check_of(length, &payload[start + HEAD_BYTES..]);
    payload[start..start + 4].copy_from_slice(&length.to_le_bytes());
    payload[start + 4..start + HEAD_BYTES].copy_from_slice(&check.to_le_bytes());
    payload.resize(payload.len().next_multiple_of(ALIGN), 0);
}

/// Where the bytes of the record lie that starts at `start` of a whole payload with so many
/// records, and where the next one starts. None if whoever wrote it was broken.
#[inline]
pub(crate) fn take(payload: &[u8], records: u16, start: usize) -> Option<(Range<usize>, usize)> {
    if records == 1 {
        return Some((0..payload.len(), payload.len()));
    }
    let (length, _) = payload.get(start..)?.split_first_chunk()?;
    let from = start + HEAD_BYTES;
    let end = from.checked_add(u32::from_le_bytes(*length) as usize)?;
    (end <= payload.len()).then_some((from..end, end.next_multiple_of(ALIGN)))
}

/// Whether the record of several that lies there is whole by its own check.
pub(crate) fn is_checked(payload: &[u8], bytes: Range<usize>) -> bool {
    let Ok(length) = u32::try_from(bytes.len()) else { return false };
    let stored = payload.get(bytes.start - 4..bytes.start);
    let check = payload.get(bytes).map(|bytes| check_of(length, bytes).to_le_bytes());
    stored.is_some() && stored == check.as_ref().map(|check| &check[..])
}

fn check_of(length: u32, bytes: &[u8]) -> u32 {
    crc32c(crc32c(0, &length.to_le_bytes()), bytes)
}

#[cfg(test)]
mod tests;
