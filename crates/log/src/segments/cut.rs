//! Cutting off the end of a log for good.
//!
//! What is cut off is written over with pads, one a span, so positions are never used again and
//! nothing that comes later can be taken for what was there. The first block of it also holds
//! frames that stay: its bytes are kept beside the log until it has been written anew, because a
//! power cut may destroy a block while it is written. In a log with parity, so is the group of its
//! stripe.
//!
//! Byte table: FORMAT.md, "Cut".
//!
//! Promise: from the moment its file is there, a cut is carried out, by this process or by the next
//! that opens the log; carried out once more, it changes nothing.
//! Never: touches what lies at or above `to`, where drains write.

use std::io;
use std::path::Path;

use holdfast_core::Lsn;
use holdfast_core::frame::{
    BLOCK_BYTES, FRAME_ALIGN, FrameHeader, HEADER_BYTES, Kind, Sealer, encode, pad_payload_bytes,
};
use holdfast_core::ring::Geometry;
use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenHow};

use crate::config::Parity;
use crate::error::{FileFault, OpenError};
use crate::format::buffer::Buffer;
use crate::format::bytes::{array_at, u32_at, u64_at};
use crate::format::catalogue::Catalogue;
use crate::format::stripe::GROUP_BYTES;
use crate::range::LsnRange;
use crate::segments::segment::Segment;

mod groups;

/// Name of the file.
const CUT: &str = "cut";
/// Its name while it is written, and while there is no cut: it keeps its room.
pub(crate) const CUT_NEW: &str = "cut.new";

const MAGIC: u32 = 0x5846_4648;
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 56;
const BLOCK: usize = BLOCK_BYTES as usize;
/// Length of the file, without a group.
const CUT_BYTES: usize = HEAD_BYTES + BLOCK;
const GROUP: usize = GROUP_BYTES as usize;

/// What is cut off, and what it takes to do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Identity of the log.
    pub(crate) identity: [u8; 16],
    /// Of the pads: that of the open log.
    pub(crate) generation: u32,
    /// The first position that is cut off; a frame ends here.
    pub(crate) from: Lsn,
    /// One past the last: what was durable.
    pub(crate) to: Lsn,
    /// When.
    pub(crate) utc_ns: i64,
    /// What precedes `from` in its block; zeros follow.
    pub(crate) block: [u8; BLOCK],
    /// In a log with parity, the group of the stripe that holds `from`, as it is afterwards; else
    /// nothing.
    pub(crate) group: Vec<u8>,
}

impl Catalogue {
    /// As it is when a cut that is not finished has been made.
    pub(crate) fn with(self, cut: Option<&Cut>) -> Catalogue {
        match cut {
            Some(cut) => self.without(cut.stretch()),
            None => self,
        }
    }
}

impl Cut {
    /// The cut that is to be carried out, if there is one, of the log with this catalogue.
    pub(crate) fn load(files: &dyn Files, catalogue: &Catalogue) -> Result<Option<Cut>, OpenError> {
        let file = match files.open(Path::new(CUT), OpenHow::default()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(OpenError::Io(error)),
        };
        let mut bytes = vec![0; CUT_BYTES + GROUP + 1];
        let got = file.read_full_at(&mut bytes, 0).map_err(OpenError::Io)?;
        let fault = match Cut::decode(&bytes[..got]) {
            Ok(cut) if cut.identity != catalogue.identity => FileFault::Foreign,
            Ok(cut) if cut.lies_in(catalogue) => return Ok(Some(cut)),
            Ok(_) => FileFault::Contents,
            Err(fault) => fault,
        };
        Err(OpenError::File { name: CUT.to_owned(), fault })
    }

    /// Makes it sure that the cut is carried out.
    pub(crate) fn record(&self, files: &dyn Files) -> io::Result<()> {
        let bytes = self.encode();
        let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
        let file = files.open(Path::new(CUT_NEW), how)?;
        file.set_len(bytes.len() as u64)?;
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        files.rename(Path::new(CUT_NEW), Path::new(CUT))?;
        files.sync_dir(Path::new(""))
    }

    /// Says that it has been carried out.
    pub(crate) fn clear(files: &dyn Files) -> io::Result<()> {
        files.rename(Path::new(CUT), Path::new(CUT_NEW))?;
        files.sync_dir(Path::new(""))
    }

    /// Makes the file that the first cut is written into.
    pub(crate) fn keep_room(files: &dyn Files, parity: Parity) -> io::Result<()> {
        let group = if parity == Parity::None { 0 } else { GROUP };
        let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
        let file = files.open(Path::new(CUT_NEW), how)?;
        file.write_all_at(&vec![0; CUT_BYTES + group], 0)?;
        file.sync_data()
    }

    /// What is cut off.
    pub(crate) fn stretch(&self) -> LsnRange {
        LsnRange { from: self.from, to: self.to }
    }

    /// Writes over what is cut off, and syncs. What lies in segments that are no longer there is
    /// gone already.
    pub(crate) fn carry_out(
        &self,
        sealer: &Sealer,
        geometry: Geometry,
        segment_of: impl Fn(u64) -> Option<Segment>,
    ) -> io::Result<()> {
        let mut at = self.from.align_down(BLOCK_BYTES);
        while at < self.to {
            let end = geometry.span_end(at).min(self.to);
            if let Some(segment) = segment_of(geometry.segment_of(at)) {
                if !self.group.is_empty() {
                    self.write_groups(&segment, sealer, geometry, (at, end))?;
                }
                let mut blocks = Buffer::zeroed(end.since(at) as usize);
                self.overlay(sealer, geometry, at, blocks.bytes_mut());
                segment.write_all(at, blocks.bytes())?;
                segment.sync()?;
            }
            at = end;
        }
        Ok(())
    }

    /// Changes whole blocks of one span, which begin at `start`, into what they are afterwards.
    pub(crate) fn overlay(
        &self,
        sealer: &Sealer,
        geometry: Geometry,
        start: Lsn,
        blocks: &mut [u8],
    ) {
        let span_start = start.align_down(geometry.span_bytes());
        let pad = self.from.max(span_start);
        let end = start.advance(blocks.len() as u64);
        let pad_end = self.to.min(geometry.span_end(start));
        let (from, to) = (pad.max(start), pad_end.min(end));
        if from >= to {
            return;
        }
        let place = |lsn: Lsn| lsn.since(start) as usize;
        blocks[place(from)..place(to)].fill(0);
        if pad < start {
            return;
        }
        let kept = pad.offset_in(BLOCK_BYTES) as usize;
        blocks[place(pad) - kept..place(pad)].copy_from_slice(&self.block[..kept]);
        let header = encode(sealer, &self.pad(sealer, pad, pad_end));
        blocks[place(pad)..place(pad) + HEADER_BYTES as usize].copy_from_slice(&header);
    }

    fn pad(&self, sealer: &Sealer, lsn: Lsn, end: Lsn) -> FrameHeader {
        let payload_bytes = pad_payload_bytes(lsn, end);
        FrameHeader {
            lsn,
            durable: lsn,
            payload_bytes,
            payload_check: zeros_check(sealer, payload_bytes as usize),
            generation: self.generation,
            kind: Kind::Pad,
            flags: 0,
            records: 0,
            utc_ns: self.utc_ns,
        }
    }

    /// The cut as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(CUT_BYTES + self.group.len());
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.identity);
        bytes.extend_from_slice(&self.from.get().to_le_bytes());
        bytes.extend_from_slice(&self.to.get().to_le_bytes());
        bytes.extend_from_slice(&self.utc_ns.to_le_bytes());
        bytes.extend_from_slice(&self.block);
        bytes.extend_from_slice(&self.group);
        let check = crc32c(0, &bytes[12..]);
        bytes[8..12].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Cut, FileFault> {
        if bytes.len() != CUT_BYTES && bytes.len() != CUT_BYTES + GROUP {
            return Err(FileFault::Length { found: bytes.len() as u64 });
        }
        if u32_at(bytes, 0) != MAGIC {
            return Err(FileFault::Magic);
        }
        if u32_at(bytes, 8) != crc32c(0, &bytes[12..]) {
            return Err(FileFault::Check);
        }
        let cut = Cut {
            generation: u32_at(bytes, 12),
            identity: array_at(bytes, 16),
            from: Lsn(u64_at(bytes, 32)),
            to: Lsn(u64_at(bytes, 40)),
            utc_ns: u64_at(bytes, 48).cast_signed(),
            block: array_at(bytes, HEAD_BYTES),
            group: bytes[CUT_BYTES..].to_vec(),
        };
        let whole = u32_at(bytes, 4) == VERSION && cut.is_sensible();
        whole.then_some(cut).ok_or(FileFault::Contents)
    }

    /// Whether an open log with this catalogue can have made it.
    fn lies_in(&self, catalogue: &Catalogue) -> bool {
        catalogue.covers(self.from)
            && self.to <= catalogue.limit()
            && self.generation < catalogue.generations_below
            && self.from.is_aligned(FRAME_ALIGN)
    }

    /// A pad fits wherever the cut begins, because the rest of a block is empty or takes one.
    fn is_sensible(&self) -> bool {
        let rest = BLOCK_BYTES - self.from.offset_in(BLOCK_BYTES);
        self.from < self.to && self.to.is_aligned(BLOCK_BYTES) && rest >= HEADER_BYTES
    }
}

/// The check of so many zeros.
fn zeros_check(sealer: &Sealer, bytes: usize) -> u32 {
    let mut left = bytes;
    let mut check = sealer.payload_seed();
    while left > 0 {
        let piece = left.min(BLOCK);
        check = sealer.more(check, &[0; BLOCK][..piece]);
        left -= piece;
    }
    check
}
