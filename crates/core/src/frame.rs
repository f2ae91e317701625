//! Frames: the atomic unit of a log, as bytes. Format version 1, little endian.
//!
//! | bytes | type | field |
//! |-------|------|-------|
//! | 0..4   | u32 | magic `0x31464648` ("HFF1") |
//! | 4..8   | u32 | header check: CRC-32C of bytes 8..48, seeded by that of the identity |
//! | 8..16  | u64 | lsn: the position of this frame |
//! | 16..24 | u64 | durable: every byte below was on the device when this frame was made |
//! | 24..28 | u32 | payload bytes |
//! | 28..32 | u32 | payload check: CRC-32C of the payload, seeded by that of the identity |
//! | 32..36 | u32 | generation: counts the opens of the log, never falls along it |
//! | 36     | u8  | kind: 1 data, 2 pad, 3 mark, 4 numbered data |
//! | 37     | u8  | flags: 1 compressed payload, 2 sealed payload; as told by the user |
//! | 38..40 | u16 | record count |
//! | 40..48 | i64 | time, nanoseconds since 1970, UTC |
//!
//! The payload follows. A frame ends at the next multiple of 8, or, where fewer than 48 bytes of
//! its block would be left, at the end of the block: so the rest of a block is always either empty
//! or large enough for a pad, and a log can be sealed to a block anywhere.
//!
//! Promise: a frame that decodes at its position, with a good payload check, was written there, in
//! this log, whole. A damaged header and a damaged payload are told apart.
//! Never: trusts a length before the header's own check has been verified.

use crate::Lsn;
use crate::check::Check;

/// First field of every frame: "HFF1".
pub const FRAME_MAGIC: u32 = 0x3146_4648;
/// Length of a header.
pub const HEADER_BYTES: u64 = 48;
/// Frames start at multiples of this.
pub const FRAME_ALIGN: u64 = 8;
/// What is written to a device is whole blocks of this many bytes.
pub const BLOCK_BYTES: u64 = 4096;
/// Payload of a mark: the released position, then 8 reserved bytes.
pub const MARK_PAYLOAD_BYTES: usize = 16;

/// Flag of a frame whose user compressed the payload.
pub const FLAG_COMPRESSED: u8 = 1;
/// Flag of a frame whose user sealed the payload: only who has the key can read it.
pub const FLAG_SEALED: u8 = 2;
/// All flags that this version knows.
pub const FLAGS: u8 = FLAG_COMPRESSED | FLAG_SEALED;

/// What precedes the records in a frame of [`Kind::Numbered`].
pub const NUMBER_BYTES: usize = 32;

const _: () = assert!(HEADER_BYTES.is_multiple_of(FRAME_ALIGN));
const _: () = assert!(BLOCK_BYTES.is_power_of_two() && BLOCK_BYTES > 2 * HEADER_BYTES);

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Records of the log's user.
    Data = 1,
    /// Nothing: fills a block or a span.
    Pad = 2,
    /// The reader's mark: every frame below the position in it has been applied.
    Mark = 3,
    /// Records of the log's user, behind [`NUMBER_BYTES`] by which whoever appended them for that
    /// user knows the request again.
    Numbered = 4,
}

/// A decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Position of the frame.
    pub lsn: Lsn,
    /// Durable watermark when the frame was made; never above `lsn`.
    pub durable: Lsn,
    /// Length of the payload.
    pub payload_bytes: u32,
    /// Check over the payload, see [`payload_check`].
    pub payload_check: u32,
    /// Which open of the log made it.
    pub generation: u32,
    /// What it holds.
    pub kind: Kind,
    /// What its user did to the payload: a sum of [`FLAG_COMPRESSED`] and [`FLAG_SEALED`].
    pub flags: u8,
    /// Number of records in the payload, as told by the user.
    pub records: u16,
    /// When it was made, nanoseconds since 1970, UTC.
    pub utc_ns: i64,
}

impl FrameHeader {
    /// Where the payload starts.
    #[must_use]
    #[inline]
    pub const fn payload_lsn(&self) -> Lsn {
        self.lsn.advance(HEADER_BYTES)
    }

    /// Where the next frame starts.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> Lsn {
        frame_end(self.lsn, self.payload_bytes)
    }
}

/// Why 48 bytes are not the header of a frame. One reason a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// All zeros: nothing was ever written here.
    Unwritten,
    /// Bytes 0..4 are something else.
    Magic,
    /// The header check does not match: damaged, or of another log.
    Check,
    /// A kind this version does not know.
    Kind(u8),
    /// Flags of which this version does not know all.
    Flags(u8),
    /// The watermark lies above the frame's own position.
    Durable,
    /// The position is not a multiple of 8.
    Lsn,
}

/// How a log's frames are told from another log's: the sum of its identity and the function.
#[derive(Clone, Copy, Debug)]
pub struct Sealer {
    seed: u32,
    check: Check,
}

impl Sealer {
    /// For the log of this identity, with this checksum function.
    #[must_use]
    pub fn new(identity: &[u8; 16], check: Check) -> Sealer {
        Sealer { seed: check(0, identity), check }
    }

    /// The start value of a payload's check; continue it with [`Self::more`]. The place of the
    /// payload need not be in it: the header's own check covers the place and this check.
    #[must_use]
    #[inline]
    pub const fn payload_seed(&self) -> u32 {
        self.seed
    }

    /// Continues a check over further bytes of the payload.
    #[must_use]
    #[inline]
    pub fn more(&self, sum: u32, bytes: &[u8]) -> u32 {
        (self.check)(sum, bytes)
    }

    #[inline]
    fn header_check(&self, bytes: &[u8; HEADER_BYTES as usize]) -> u32 {
        (self.check)(self.seed, &bytes[8..])
    }
}

/// Where a frame at `lsn` with this payload ends.
#[must_use]
#[inline]
pub const fn frame_end(lsn: Lsn, payload_bytes: u32) -> Lsn {
    let end = lsn.advance(HEADER_BYTES + payload_bytes as u64).align_up(FRAME_ALIGN);
    let block_end = end.align_up(BLOCK_BYTES);
    if block_end.since(end) < HEADER_BYTES { block_end } else { end }
}

/// The payload length of the pad that fills `[lsn, until)`; at least a header must fit.
#[must_use]
pub const fn pad_payload_bytes(lsn: Lsn, until: Lsn) -> u32 {
    let bytes = until.since(lsn);
    assert!(bytes >= HEADER_BYTES && bytes <= u32::MAX as u64);
    (bytes - HEADER_BYTES) as u32
}

/// The check of a whole payload.
#[must_use]
#[inline]
pub fn payload_check(sealer: &Sealer, payload: &[u8]) -> u32 {
    sealer.more(sealer.payload_seed(), payload)
}

/// Whether `payload` is what the header was made for.
#[must_use]
#[inline]
pub fn payload_matches(sealer: &Sealer, header: &FrameHeader, payload: &[u8]) -> bool {
    payload.len() as u64 == u64::from(header.payload_bytes)
        && payload_check(sealer, payload) == header.payload_check
}

/// A header as bytes.
#[must_use]
pub fn encode(sealer: &Sealer, header: &FrameHeader) -> [u8; HEADER_BYTES as usize] {
    let mut bytes = [0u8; HEADER_BYTES as usize];
    encode_into(sealer, header, &mut bytes);
    bytes
}

/// [`encode`], straight to where the header goes: a word at a time, because what has just been
/// stored in smaller pieces is slow to load.
#[inline]
pub fn encode_into(sealer: &Sealer, header: &FrameHeader, into: &mut [u8; HEADER_BYTES as usize]) {
    let rest = u64::from(header.generation)
        | u64::from(header.kind as u8) << 32
        | u64::from(header.flags) << 40
        | u64::from(header.records) << 48;
    let lengths = u64::from(header.payload_bytes) | u64::from(header.payload_check) << 32;
    let utc = header.utc_ns.cast_unsigned();
    let words = [header.lsn.get(), header.durable.get(), lengths, rest, utc];
    let (places, _) = into.as_chunks_mut::<8>();
    for (place, word) in places[1..].iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    let check = u64::from(sealer.header_check(into));
    into[..8].copy_from_slice(&(u64::from(FRAME_MAGIC) | check << 32).to_le_bytes());
}

/// Bytes as a header. The position is compared by the caller, who knows where the bytes lay.
///
/// # Errors
/// The first field, in the order check, then contents, that is not what a header of this log has.
#[inline]
pub fn decode(
    sealer: &Sealer,
    bytes: &[u8; HEADER_BYTES as usize],
) -> Result<FrameHeader, HeaderFault> {
    if u32_at(bytes, 0) != FRAME_MAGIC {
        return Err(if are_zeros(bytes) { HeaderFault::Unwritten } else { HeaderFault::Magic });
    }
    if u32_at(bytes, 4) != sealer.header_check(bytes) {
        return Err(HeaderFault::Check);
    }
    if bytes[37] & !FLAGS != 0 {
        return Err(HeaderFault::Flags(bytes[37]));
    }
    let header = FrameHeader {
        lsn: Lsn(u64_at(bytes, 8)),
        durable: Lsn(u64_at(bytes, 16)),
        payload_bytes: u32_at(bytes, 24),
        payload_check: u32_at(bytes, 28),
        generation: u32_at(bytes, 32),
        kind: kind(bytes[36])?,
        flags: bytes[37],
        records: u16::from_le_bytes([bytes[38], bytes[39]]),
        utc_ns: u64_at(bytes, 40).cast_signed(),
    };
    in_order(&header)
}

#[inline]
fn in_order(header: &FrameHeader) -> Result<FrameHeader, HeaderFault> {
    if !header.lsn.is_aligned(FRAME_ALIGN) {
        return Err(HeaderFault::Lsn);
    }
    if header.durable > header.lsn {
        return Err(HeaderFault::Durable);
    }
    Ok(*header)
}

#[inline]
fn kind(byte: u8) -> Result<Kind, HeaderFault> {
    match byte {
        1 => Ok(Kind::Data),
        2 => Ok(Kind::Pad),
        3 => Ok(Kind::Mark),
        4 => Ok(Kind::Numbered),
        other => Err(HeaderFault::Kind(other)),
    }
}

/// Whether there is nothing but zeros, eight at a look.
#[must_use]
#[inline]
pub fn are_zeros(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().all(|word| *word == [0; 8]) && rest.iter().all(|byte| *byte == 0)
}

/// The payload of a mark.
#[must_use]
pub fn encode_mark(released: Lsn) -> [u8; MARK_PAYLOAD_BYTES] {
    let mut bytes = [0u8; MARK_PAYLOAD_BYTES];
    bytes[..8].copy_from_slice(&released.get().to_le_bytes());
    bytes
}

/// The released position in the payload of a mark, if it has the right length.
#[must_use]
pub fn decode_mark(payload: &[u8]) -> Option<Lsn> {
    let (released, reserved) = payload.split_first_chunk::<8>()?;
    let whole = reserved.len() == MARK_PAYLOAD_BYTES - 8;
    whole.then_some(Lsn(u64::from_le_bytes(*released)))
}

#[inline]
fn u32_at(bytes: &[u8; HEADER_BYTES as usize], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
fn u64_at(bytes: &[u8; HEADER_BYTES as usize], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests;
