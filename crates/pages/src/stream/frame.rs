//! What records travel in: the payload of one frame of the log.
//!
//! Byte table: FORMAT.md, "Frame of records".
//!
//! Promise: records are read as those of this store, at the places that they were given.
//! Never: checks the bytes of a record for damage; the log's frame has a check over all of it.

use crate::error::FrameFault;
use crate::stream::record::Records;
use crate::stream::rsn::Rsn;
use crate::stream::tag::Tag;

/// What precedes the records of a frame.
pub const FRAME_HEAD_BYTES: usize = 16;

/// The version of frames and records that this program reads and writes.
const VERSION: u16 = 1;

/// The payload of one frame, its head read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed<'a> {
    first: Rsn,
    records: &'a [u8],
}

impl<'a> Framed<'a> {
    /// What precedes the records of a frame, the first of which stands at `first`.
    #[must_use]
    pub fn head(first: Rsn, tag: Tag) -> [u8; FRAME_HEAD_BYTES] {
        let mut head = [0; FRAME_HEAD_BYTES];
        head[..8].copy_from_slice(&first.get().to_le_bytes());
        head[8..12].copy_from_slice(&tag.get().to_le_bytes());
        head[12..14].copy_from_slice(&VERSION.to_le_bytes());
        head
    }

    /// The payload of a frame of the store with this tag.
    ///
    /// # Errors
    /// See [`FrameFault`].
    pub fn parse(payload: &'a [u8], tag: Tag) -> Result<Framed<'a>, FrameFault> {
        let (found, records) =
            payload.split_first_chunk::<FRAME_HEAD_BYTES>().ok_or(FrameFault::Head)?;
        let first = Rsn(u64::from_le_bytes(field(found, 0)));
        let version = u16::from_le_bytes(field(found, 12));
        if u32::from_le_bytes(field(found, 8)) != tag.get() {
            return Err(FrameFault::Foreign);
        }
        if version != VERSION {
            return Err(FrameFault::OtherVersion { found: version, known: VERSION });
        }
        let room = (u64::MAX - first.get()) >= records.len() as u64;
        if *found != Framed::head(first, tag) || first < Rsn::FIRST || records.is_empty() || !room {
            return Err(FrameFault::Head);
        }
        Ok(Framed { first, records })
    }

    /// That it begins where the frame before it ended.
    ///
    /// # Errors
    /// [`FrameFault::Gap`].
    pub fn follows(&self, end: Rsn) -> Result<(), FrameFault> {
        let fault = FrameFault::Gap { end, first: self.first };
        if self.first == end { Ok(()) } else { Err(fault) }
    }

    /// Where its first record stands.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Rsn {
        self.first
    }

    /// Where the first record behind it stands.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Rsn {
        self.first.advance(self.records.len() as u64)
    }

    /// Its records, as bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.records
    }

    /// Its records.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records::new(self.first, self.records)
    }
}

fn field<const BYTES: usize>(head: &[u8; FRAME_HEAD_BYTES], at: usize) -> [u8; BYTES] {
    head[at..at + BYTES].try_into().expect("a slice is as long as it was cut")
}

#[cfg(test)]
mod tests;
