//! The segments of a log as one long row of bytes, with what an open would put over them.
//!
//! Promise: a position is read from the file that the catalogue lists for it, if that file says
//! that it is this segment of this log.
//! Never: reads where there is nothing of the log.

use std::collections::BTreeMap;

use crate::Directory;
use crate::catalogue::Catalogue;
use crate::check::{crc32c, u32_at, u64_at};
use crate::frame::{self, ALIGN, Frame, HEADER_BYTES, Header};

const BLOCK_BYTES: usize = 4096;
const SPAN_BYTES_MAX: u64 = 8 << 20;
const SEGMENT_MAGIC: u32 = u32::from_le_bytes(*b"HFFS");
const AGAIN_MAGIC: u32 = u32::from_le_bytes(*b"HFFA");
const CUT_MAGIC: u32 = u32::from_le_bytes(*b"HFFX");

/// All of them.
pub(crate) struct Segments {
    segment_bytes: u64,
    /// The frames' bytes, by number of segment.
    bytes: BTreeMap<u64, Vec<u8>>,
    gaps: Vec<(u64, u64)>,
    /// The check of the identity, which all others go on from.
    seed: u32,
}

impl Segments {
    /// Those that a catalogue lists, with `again` and `cut` done.
    pub(crate) fn new(directory: &Directory, catalogue: &Catalogue) -> Segments {
        let segment_bytes = catalogue.segment_bytes.max(1);
        let listed = catalogue.files.iter().filter_map(|(number, name)| {
            let file = directory.get(&format!("segment-{name:08}"))?;
            Some((*number, frames_of(file, *number, catalogue)?.to_vec()))
        });
        let mut segments = Segments {
            segment_bytes,
            bytes: listed.collect(),
            gaps: catalogue.gaps.clone(),
            seed: crc32c(0, &catalogue.identity),
        };
        if let Some((at, blocks)) = again(directory, &catalogue.identity) {
            segments.put(at, blocks);
        }
        if let Some((from, to, block)) = cut(directory, &catalogue.identity) {
            segments.put(from - from % BLOCK_BYTES as u64, block);
            segments.gaps.push((from, to));
        }
        segments
    }

    /// Where the log goes on, at this position or behind what is not of it.
    pub(crate) fn behind_gap(&self, at: u64) -> u64 {
        let over = self.gaps.iter().find(|(from, to)| (*from..*to).contains(&at));
        over.map_or(at, |(_, to)| self.behind_gap(*to))
    }

    /// The whole frame at a position, unless an earlier open made it than this.
    pub(crate) fn frame_at(&self, at: u64, generation: u32) -> Option<Frame> {
        let header = self.header_at(at, generation)?;
        let bytes = self.between(at, header.end(at))?;
        header.frame(at, bytes, self.seed)
    }

    /// Where the span of a position begins.
    pub(crate) fn span_start(&self, at: u64) -> u64 {
        at - at % self.span_bytes()
    }

    /// How far headers behind the end prove that the log was durable.
    pub(crate) fn proved_behind(&self, end: u64, generation: u32) -> u64 {
        let places = self.bytes.iter().flat_map(|(number, bytes)| {
            let start = number.saturating_mul(self.segment_bytes);
            let chunks = (0..).step_by(ALIGN as usize).zip(bytes.chunks(ALIGN as usize));
            let begins = chunks.filter(|(_, bytes)| bytes.starts_with(frame::MAGIC_BYTES));
            begins.map(move |(offset, _): (u64, _)| start.saturating_add(offset))
        });
        let of_log = places.filter(|at| *at >= end && self.behind_gap(*at) == *at);
        let proofs = of_log.filter_map(|at| {
            Some(self.header_at(at, generation)?.durable.max(self.span_start(at)))
        });
        proofs.max().unwrap_or_default()
    }

    fn header_at(&self, at: u64, generation: u32) -> Option<Header> {
        let span_end = self.span_start(at).checked_add(self.span_bytes())?;
        let bytes = self.between(at, at.checked_add(HEADER_BYTES)?)?;
        let header = Header::parse(bytes, at, span_end, self.seed)?;
        (header.generation >= generation).then_some(header)
    }

    fn span_bytes(&self) -> u64 {
        self.segment_bytes.min(SPAN_BYTES_MAX)
    }

    /// Bytes of one segment.
    fn between(&self, from: u64, to: u64) -> Option<&[u8]> {
        let segment = self.bytes.get(&(from / self.segment_bytes))?;
        let start = (from % self.segment_bytes) as usize;
        segment.get(start..start.checked_add((to - from) as usize)?)
    }

    /// Writes over what is there.
    fn put(&mut self, at: u64, bytes: &[u8]) {
        let start = (at % self.segment_bytes) as usize;
        let segment = self.bytes.get_mut(&(at / self.segment_bytes));
        if let Some(place) = segment.and_then(|it| it.get_mut(start..start + bytes.len())) {
            place.copy_from_slice(bytes);
        }
    }
}

/// The frames of a file, if its header says that they are those of this segment.
fn frames_of<'a>(file: &'a [u8], number: u64, catalogue: &Catalogue) -> Option<&'a [u8]> {
    let label_bytes = u32_at(file, 48)? as usize;
    let is_this = u32_at(file, 0)? == SEGMENT_MAGIC
        && u32_at(file, 4)? == 2
        && crc32c(0, file.get(12..56 + label_bytes)?) == u32_at(file, 8)?
        && file.get(16..32)? == catalogue.identity
        && u64_at(file, 32)? == number;
    let frames = file.get(BLOCK_BYTES..)?;
    let bytes = usize::try_from(catalogue.segment_bytes).ok()?;
    is_this.then(|| &frames[..bytes.min(frames.len())])
}

/// Where blocks are to be written once more, and those.
fn again<'a>(directory: &'a Directory, identity: &[u8; 16]) -> Option<(u64, &'a [u8])> {
    let file = directory.get("again")?;
    let blocks = file.get(48..48 + u32_at(file, 12)?.min(1 << 16) as usize)?;
    let is_whole = u32_at(file, 0)? == AGAIN_MAGIC
        && crc32c(0, file.get(12..48 + blocks.len())?) == u32_at(file, 8)?
        && file.get(16..32)? == identity;
    is_whole.then_some((u64_at(file, 32)?, blocks))
}

/// From where to where the log is being cut off, and the block that the cut begins in.
fn cut<'a>(directory: &'a Directory, identity: &[u8; 16]) -> Option<(u64, u64, &'a [u8])> {
    let file = directory.get("cut")?;
    let is_whole = u32_at(file, 0)? == CUT_MAGIC
        && crc32c(0, file.get(12..)?) == u32_at(file, 8)?
        && file.get(16..32)? == identity;
    let block = file.get(56..56 + BLOCK_BYTES)?;
    is_whole.then_some((u64_at(file, 32)?, u64_at(file, 40)?, block))
}
