//! Frames, as bytes.
//!
//! Promise: a frame that is given out is whole: header, payload, and the zeros up to the next.
//! Never: trusts a length before the check of its header.

use crate::check::{crc32c, u16_at, u32_at, u64_at};

/// What a frame begins with.
pub(crate) const MAGIC_BYTES: &[u8; 4] = b"HFF1";
const MAGIC: u32 = u32::from_le_bytes(*MAGIC_BYTES);
/// Bytes of a header.
pub(crate) const HEADER_BYTES: u64 = 48;
/// Frames begin at multiples of this.
pub(crate) const ALIGN: u64 = 8;
const BLOCK_BYTES: u64 = 4096;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Records of a user.
    Data,
    /// Nothing.
    Pad,
    /// What a reader has applied.
    Mark,
    /// Records of a user, behind 32 bytes of a server.
    Numbered,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        Some(match byte {
            1 => Kind::Data,
            2 => Kind::Pad,
            3 => Kind::Mark,
            4 => Kind::Numbered,
            _ => return None,
        })
    }

    /// Whether it holds what a user put into the log.
    #[must_use]
    pub fn is_of_users(self) -> bool {
        matches!(self, Kind::Data | Kind::Numbered)
    }
}

/// A whole frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it begins.
    pub lsn: u64,
    /// Where the next one begins.
    pub end: u64,
    /// What was durable when it was made.
    pub durable: u64,
    /// Which open of the log made it.
    pub generation: u32,
    /// What it is.
    pub kind: Kind,
    /// Records that it says it has.
    pub records: u16,
    /// What it holds, a server's bytes included.
    pub payload: Vec<u8>,
}

impl Frame {
    /// What a mark says was applied.
    pub(crate) fn released(&self) -> Option<u64> {
        (self.kind == Kind::Mark).then(|| u64_at(&self.payload, 0)).flatten()
    }
}

/// A header whose check is right, at its own place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) durable: u64,
    pub(crate) generation: u32,
    kind: Kind,
    records: u16,
    payload_bytes: u64,
    payload_check: u32,
}

impl Header {
    /// The one in these bytes, if it belongs at `lsn` and its payload fits below `span_end`.
    pub(crate) fn parse(bytes: &[u8], lsn: u64, span_end: u64, seed: u32) -> Option<Header> {
        if u32_at(bytes, 0)? != MAGIC || u64_at(bytes, 8)? != lsn {
            return None;
        }
        if crc32c(seed, bytes.get(8..HEADER_BYTES as usize)?) != u32_at(bytes, 4)? {
            return None;
        }
        let header = Header {
            durable: u64_at(bytes, 16)?,
            generation: u32_at(bytes, 32)?,
            kind: Kind::of(*bytes.get(36)?)?,
            records: u16_at(bytes, 38)?,
            payload_bytes: u64::from(u32_at(bytes, 24)?),
            payload_check: u32_at(bytes, 28)?,
        };
        let fits = header.payload_bytes <= span_end.checked_sub(lsn + HEADER_BYTES)?;
        (fits && header.durable <= lsn).then_some(header)
    }

    /// Where the next frame begins behind one at `lsn`.
    pub(crate) fn end(&self, lsn: u64) -> u64 {
        let end = (lsn + HEADER_BYTES + self.payload_bytes).next_multiple_of(ALIGN);
        let left = end.next_multiple_of(BLOCK_BYTES) - end;
        if left < HEADER_BYTES { end + left } else { end }
    }

    /// The frame, if `bytes`, all up to the next, are what it was made of.
    pub(crate) fn frame(&self, lsn: u64, bytes: &[u8], seed: u32) -> Option<Frame> {
        let (payload, zeros) =
            bytes.get(HEADER_BYTES as usize..)?.split_at_checked(self.payload_bytes as usize)?;
        let is_whole = crc32c(seed, payload) == self.payload_check
            && zeros.iter().all(|byte| *byte == 0)
            && (self.kind != Kind::Pad || payload.iter().all(|byte| *byte == 0));
        let Header { durable, generation, kind, records, .. } = *self;
        let (end, payload) = (self.end(lsn), payload.to_vec());
        is_whole.then_some(Frame { lsn, end, durable, generation, kind, records, payload })
    }
}
