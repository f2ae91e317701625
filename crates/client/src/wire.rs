//! Frames and notes as they lie in a buffer.
//!
//! A frame: its header's fields, 48 bytes, then what was appended, padded to 8. A note: its length,
//! 4 bytes, then the note.
//!
//! Promise: what one side packs the other unpacks; anything else unpacks to an end, never outside
//! of the buffer.
//! Never: carries what the server put before a payload.

use holdfast_log::{Frame, FrameHeader, Kind, Lsn};

use crate::protocol::{u32_at, u64_at};

/// Bytes before what was appended.
pub const FRAME_HEAD_BYTES: usize = 48;

/// Adds a frame, as its user appended it, behind what is in `into`. Returns false, and adds
/// nothing, if that would make it longer than `bytes_max`.
pub fn pack_frame(into: &mut Vec<u8>, frame: &Frame<'_>, bytes_max: usize) -> bool {
    let payload = frame.payload;
    if into.len() + FRAME_HEAD_BYTES + payload.len().next_multiple_of(8) > bytes_max {
        return false;
    }
    let header = &frame.header;
    into.extend_from_slice(&header.lsn.0.to_le_bytes());
    into.extend_from_slice(&header.durable.0.to_le_bytes());
    into.extend_from_slice(&header.utc_ns.to_le_bytes());
    for word in [header.payload_bytes, header.payload_check, header.generation] {
        into.extend_from_slice(&word.to_le_bytes());
    }
    let counts = u32::from(header.records) | u32::from(header.flags) << 16;
    into.extend_from_slice(&counts.to_le_bytes());
    into.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    into.extend_from_slice(payload);
    into.resize(into.len().next_multiple_of(8), 0);
    true
}

/// The frames in a buffer, in order.
pub fn unpack_frames(mut bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    std::iter::from_fn(move || {
        let (frame, rest) = unpack_frame(bytes)?;
        bytes = rest;
        Some(frame)
    })
}

fn unpack_frame(bytes: &[u8]) -> Option<(Frame<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(FRAME_HEAD_BYTES)?;
    let header = FrameHeader {
        lsn: Lsn(u64_at(head, 0)),
        durable: Lsn(u64_at(head, 8)),
        utc_ns: u64_at(head, 16).cast_signed(),
        payload_bytes: u32_at(head, 24),
        payload_check: u32_at(head, 28),
        generation: u32_at(head, 32),
        records: u32_at(head, 36) as u16,
        flags: (u32_at(head, 36) >> 16) as u8,
        kind: Kind::Data,
    };
    let length = usize::try_from(u64_at(head, 40)).ok()?;
    let (payload, rest) = rest.split_at_checked(length)?;
    let padding = length.next_multiple_of(8) - length;
    let number_bytes = u64::from(header.payload_bytes).checked_sub(length as u64)?;
    let payload_lsn = header.payload_lsn().advance(number_bytes);
    Some((Frame { header, payload, payload_lsn }, rest.get(padding..)?))
}

/// Adds a note behind what is in `into`, if it still fits into `bytes_max`.
pub fn pack_note(into: &mut Vec<u8>, note: &[u8], bytes_max: usize) -> bool {
    if into.len() + 4 + note.len() > bytes_max {
        return false;
    }
    into.extend_from_slice(&(note.len() as u32).to_le_bytes());
    into.extend_from_slice(note);
    true
}

/// The notes in a buffer, in order.
pub fn unpack_notes(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk()?;
        let (note, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        bytes = rest;
        Some(note)
    })
}
