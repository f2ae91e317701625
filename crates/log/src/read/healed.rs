//! Reading the ring where memory may have damaged it.
//!
//! Promise: whoever reads the ring gets what was appended, or hears where memory has lost it. A
//! frame that the disk has whole is taken from there, and counted.
//! Never: changes the ring, which others may be reading; reads the disk while memory is sound.

use std::sync::atomic::Ordering;

use holdfast_core::Lsn;
use holdfast_core::frame::{BLOCK_BYTES, FrameHeader, HEADER_BYTES, decode, payload_matches};

use crate::error::ReadError;
use crate::format::buffer::Buffer;
use crate::open::recovery::is_whole;
use crate::read::damaged::Bytes;
use crate::read::frames::{Frame, Frames};
use crate::state::Log;
use crate::words;

impl Log {
    /// Hands the frame at `at` to `each`, if it ends at `to` or before: from the ring where it is
    /// whole there, from the disk otherwise. Returns where it ends, and what `each` did.
    pub(crate) fn hand_frame<T>(
        &self,
        frames: &Frames<'_>,
        (at, to): (Lsn, Lsn),
        each: impl FnOnce(&Frame<'_>) -> T,
    ) -> Result<(Lsn, T), ReadError> {
        let in_ring = frames.get(at);
        let is_sound = |it: &Frame<'_>| payload_matches(&self.sealer, &it.header, it.payload);
        if let Some(frame) = in_ring.filter(is_sound) {
            return Ok((frame.end(), each(&frame)));
        }
        let bytes = match self.damaged.around(at).filter(|(start, _)| *start == at) {
            Some((_, bytes)) => bytes,
            None => self.take_from_disk(at).ok_or(match in_ring {
                Some(_) => ReadError::Damaged(at),
                None => ReadError::Boundary(at),
            })?,
        };
        let frame = self.frame_in(at, &bytes).filter(|frame| frame.end() <= to);
        let frame = frame.ok_or(ReadError::Boundary(at))?;
        Ok((frame.end(), each(&frame)))
    }

    /// Copies bytes of one frame that memory has damaged, if they are of one that was found to be.
    pub(crate) fn copy_damaged(&self, lsn: Lsn, into: &mut [u8]) -> bool {
        let Some((at, bytes)) = self.damaged.around(lsn) else { return false };
        let from = lsn.since(at) as usize;
        let found = bytes.get(from..from.saturating_add(into.len()));
        found.inspect(|found| into.copy_from_slice(found)).is_some()
    }

    /// The frame at `at` as the disk has it, if it has it whole; it is counted, and kept.
    #[cold]
    fn take_from_disk(&self, at: Lsn) -> Option<Bytes> {
        let bytes: Bytes = self.frame_of_disk(at)?.into();
        self.damaged.put(at, bytes.clone());
        self.word(words::HEALED).fetch_add(1, Ordering::Relaxed);
        Some(bytes)
    }

    fn frame_of_disk(&self, at: Lsn) -> Option<Vec<u8>> {
        let start = at.align_down(BLOCK_BYTES);
        let skipped = at.since(start) as usize;
        let is_durable = |end: Lsn| end <= self.marks().durable;
        let head = at.advance(HEADER_BYTES);
        let block = is_durable(head).then(|| self.blocks_of_disk(start, head))??;
        let header = decode(&self.sealer, block.bytes()[skipped..].first_chunk()?).ok()?;
        let is_here = header.lsn == at && self.geometry.holds(at, header.payload_bytes);
        let is_there = is_here && is_durable(header.end());
        let blocks = is_there.then(|| self.blocks_of_disk(start, header.end()))??;
        let frame = &blocks.bytes()[skipped..][..header.end().since(at) as usize];
        is_whole(&self.sealer, &header, frame).then(|| frame.to_vec())
    }

    /// Whole blocks of one span, mended if parity can do that.
    fn blocks_of_disk(&self, start: Lsn, end: Lsn) -> Option<Buffer> {
        let segment = self.segments.find(self.geometry.segment_of(start))?;
        let mut blocks = Buffer::zeroed(end.align_up(BLOCK_BYTES).since(start) as usize);
        segment.read(start, blocks.bytes_mut()).ok()?;
        self.rebuild(start, blocks.bytes_mut());
        Some(blocks)
    }

    fn frame_in<'a>(&self, at: Lsn, bytes: &'a [u8]) -> Option<Frame<'a>> {
        let (head, rest) = bytes.split_first_chunk()?;
        let header: FrameHeader = decode(&self.sealer, head).ok()?;
        let payload = rest.get(..header.payload_bytes as usize)?;
        Some(Frame { header, payload, payload_lsn: at.advance(HEADER_BYTES) })
    }
}
