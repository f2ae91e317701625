//! The records in the payload of a frame.
//!
//! Byte table: FORMAT.md, "Payload".
//!
//! Promise: a record that is taken is the one that was put, by a check of its own that covers its
//! length, too; each begins at a multiple of 8, which is what a record read in place needs.
//! Never: knows a format.

use std::ops::Range;

use holdfast_io::checksum::crc32c;

/// What precedes a record: u32 length, u32 check.
pub(crate) const HEAD_BYTES: usize = 8;
/// Records begin at multiples of this.
const ALIGN: usize = 8;

/// Starts a record at the end of `payload`; [`finish`] is told what this returns.
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

/// Where the bytes of the record lie that starts at `start`, and where the next one starts. None if
/// it is not whole.
pub(crate) fn take(payload: &[u8], start: usize) -> Option<(Range<usize>, usize)> {
    let head = payload.get(start..)?;
    let (length, rest) = head.split_first_chunk()?;
    let (check, rest) = rest.split_first_chunk()?;
    let length = u32::from_le_bytes(*length);
    let bytes = rest.get(..length as usize)?;
    let end = start + HEAD_BYTES + bytes.len();
    let next = end.next_multiple_of(ALIGN);
    let zeros = payload.get(end..next)?.iter().all(|byte| *byte == 0);
    let whole = zeros && check_of(length, bytes) == u32::from_le_bytes(*check);
    whole.then_some((start + HEAD_BYTES..end, next))
}

fn check_of(length: u32, bytes: &[u8]) -> u32 {
    crc32c(crc32c(0, &length.to_le_bytes()), bytes)
}

#[cfg(test)]
mod tests;
