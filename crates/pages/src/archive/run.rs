//! Writes a run: all records of a stretch of the stream, sorted by page.
//!
//! Byte table: FORMAT.md, "Run".
//!
//! Promise: a run has its name only when it is whole and synced; until then nothing takes it for
//! one.
//! Never: chooses what goes into a run, or says when.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

use holdfast_io::{Files, OpenFile, OpenHow};

use crate::archive::bloom::Bloom;
use crate::archive::run_block::{COMPRESSED, Compression, HEAD_BYTES, Packer};
use crate::archive::run_format::{
    BLOOM, BlockPlace, CHECK_BYTES, FRAMES, Footer, HEAD, INDEX, PARTS, RunSpan, UNCOMPRESSED,
    check_of, put_entry, zigzag,
};
use crate::stream::frame_index::FramePlace;
use crate::stream::rsn::{PageNumber, Rsn};
use crate::stream::tag::Tag;
use crate::varint;

/// A block takes no more records when it has so many bytes. Whoever wants a page reads and parses a
/// block of each run that has records of it: with blocks of 16 KiB that took three times as long.
/// Each block is told in the index, which is 0.6 % of a run so.
const BLOCK_BYTES: usize = 4 << 10;
/// What is handed to the file system at once.
const WRITE_BYTES: usize = 256 << 10;
const NS_PER_MS: i64 = 1_000_000;

/// A run on its way to the directory that `F` has. Dropped before its end it leaves a file that the
/// next one replaces.
pub struct RunWriter<F> {
    files: F,
    file: Arc<dyn OpenFile>,
    tag: Tag,
    span: RunSpan,
    /// Bytes that are not written yet, and where they go.
    out: Vec<u8>,
    out_at: u64,
    /// Where in `out` the last block begins.
    block: usize,
    index: Vec<BlockPlace>,
    pages: Vec<PageNumber>,
    last: (PageNumber, Rsn),
    is_trimmed: bool,
    packer: Option<Packer>,
}

impl<F: Deref<Target: Files>> RunWriter<F> {
    /// Begins a run in the directory that `files` has. There is one of
    /// its level on its way at a time.
    ///
    /// # Errors
    /// What the file system says; begin again.
    pub fn begin(files: F, tag: Tag, span: RunSpan) -> io::Result<RunWriter<F>> {
        match files.remove_file(&span.path_unfinished()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
        let file = files.open(&span.path_unfinished(), OpenHow { exclusive: true, ..how })?;
        let (out, last) = (Vec::with_capacity(2 * WRITE_BYTES), (PageNumber::NONE, Rsn::NONE));
        let (index, pages, is_trimmed) = (Vec::new(), Vec::new(), false);
        Ok(RunWriter {
            files,
            file,
            tag,
            span,
            out,
            out_at: 0,
            block: 0,
            index,
            pages,
            last,
            is_trimmed,
            packer: None,
        })
    }

    /// Compresses its records, so that only programs read the run that know of that.
    ///
    /// # Panics
    /// If it has some already.
    pub fn compress(&mut self, how: Compression) {
        assert!(self.index.is_empty(), "all blocks of a run are of one form");
        self.packer = (how == Compression::Lz4).then(Packer::default);
    }

    /// Adds the record that stands at `rsn` and has these bytes there; `page` is
    /// [`crate::NO_PAGE`] for one that is about none.
    ///
    /// # Errors
    /// What the file system says; begin the run again.
    ///
    /// # Panics
    /// If the record is outside of the run, or not behind the one before by page and place.
    pub fn push(&mut self, page: PageNumber, rsn: Rsn, record: &[u8]) -> io::Result<()> {
        assert!(self.span.begin <= rsn && rsn < self.span.end, "{rsn} is in {:?}", self.span);
        assert!(self.last < (page, rsn), "records of a run are sorted");
        let block_bytes = self.out.len() - self.block;
        if self.index.is_empty() || block_bytes + record.len() > BLOCK_BYTES {
            self.end_block()?;
            self.begin_block(page, rsn);
        }
        if self.last.0 != page {
            self.pages.push(page);
        }
        put_entry(self.span.begin, rsn, record, &mut self.out);
        self.last = (page, rsn);
        Ok(())
    }

    /// Says that records are left out, each of which an image of its page replaces that is not. The
    /// store can no more be made as it was at a moment within the run.
    pub fn trim(&mut self) {
        self.is_trimmed = true;
    }

    /// Ends the run: from now on it has its name. `state` is what a fold of all records before it
    /// gives, and `frames` are those that its records came in.
    ///
    /// # Errors
    /// What the file system says; begin the run again. It may have its name after a crash, and is
    /// whole then.
    ///
    /// # Panics
    /// If the frames are not those of the run.
    pub fn finish(self, state: &[u8], frames: &[FramePlace]) -> io::Result<()> {
        let mut told = RunFrames::default();
        frames.iter().for_each(|frame| told.push(*frame));
        self.finish_in(state, &told)
    }

    /// [`RunWriter::finish`], of frames that need not be in memory at once.
    ///
    /// # Errors
    /// The same.
    ///
    /// # Panics
    /// The same.
    pub(crate) fn finish_in(mut self, state: &[u8], frames: &RunFrames) -> io::Result<()> {
        self.end_block()?;
        let (first, last) = frames.ends(self.span);
        let mut footer = Footer {
            version: if self.packer.is_some() { COMPRESSED } else { UNCOMPRESSED },
            span: self.span,
            blocks: u32::try_from(self.index.len()).expect("a run has less than 2^32 blocks"),
            begin_lsn: first.lsn,
            end_lsn: last.lsn_end,
            first_utc_ns: first.utc_ns,
            last_utc_ns: last.utc_ns,
            parts: [0; PARTS + 1],
            checks: [0; PARTS],
            is_trimmed: self.is_trimmed,
        };
        self.put_part(HEAD, state, &mut footer)?;
        self.put_part(FRAMES, &frames.bytes, &mut footer)?;
        let mut index = Vec::new();
        self.index.iter().for_each(|place| place.put(&mut index));
        self.put_part(INDEX, &index, &mut footer)?;
        let bloom = Bloom::of(&self.pages);
        self.put_part(BLOOM, bloom.bytes(), &mut footer)?;
        self.out.extend_from_slice(&footer.bytes(self.tag));
        self.publish()
    }

    /// Writes what is left, and gives the file its name.
    fn publish(mut self) -> io::Result<()> {
        self.write_out()?;
        self.file.sync_data()?;
        self.files.rename(&self.span.path_unfinished(), &self.span.path())?;
        self.files.sync_dir(Path::new(""))
    }

    fn put_part(&mut self, part: usize, bytes: &[u8], footer: &mut Footer) -> io::Result<()> {
        let at = self.end();
        footer.parts[part] = at;
        footer.checks[part] = check_of(self.tag, self.span.begin, at, bytes);
        self.out.extend_from_slice(bytes);
        self.write_out()
    }

    fn begin_block(&mut self, page: PageNumber, rsn: Rsn) {
        self.index.push(BlockPlace { page, rsn, offset: self.end() });
        self.block = self.out.len();
        let head = if self.packer.is_some() { HEAD_BYTES } else { CHECK_BYTES };
        self.out.extend_from_slice(&[0; HEAD_BYTES][..head]);
    }

    /// Compresses the block, if there is one and it is to be, and puts its check in front of it.
    fn end_block(&mut self) -> io::Result<()> {
        let Some(place) = self.index.last() else { return Ok(()) };
        if let Some(packer) = &mut self.packer {
            let head = self.block + CHECK_BYTES..self.block + HEAD_BYTES;
            let whole = packer.pack(&mut self.out, head.end);
            self.out[head].copy_from_slice(&whole.to_le_bytes());
        }
        let entries = &self.out[self.block + CHECK_BYTES..];
        let check = check_of(self.tag, self.span.begin, place.offset, entries);
        self.out[self.block..self.block + CHECK_BYTES].copy_from_slice(&check.to_le_bytes());
        if self.out.len() >= WRITE_BYTES { self.write_out() } else { Ok(()) }
    }

    /// Where the next byte goes.
    fn end(&self) -> u64 {
        self.out_at + self.out.len() as u64
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.out, self.out_at)?;
        self.out_at = self.end();
        self.out.clear();
        Ok(())
    }
}

impl<F> fmt::Debug for RunWriter<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("RunWriter");
        out.field("span", &self.span).field("last", &self.last).finish_non_exhaustive()
    }
}

/// The frames of a run, as it tells them: a few bytes each.
///
/// Of each frame how far it lies behind the one before: its records, itself, and its time. The last
/// two may go back, where a store was restored and where a clock was set.
#[derive(Debug, Default)]
pub(crate) struct RunFrames {
    bytes: Vec<u8>,
    before: (u64, i64, i64),
    ends: Option<(FramePlace, FramePlace)>,
}

impl RunFrames {
    /// Adds the next one.
    ///
    /// # Panics
    /// If it is not behind the one before.
    pub(crate) fn push(&mut self, frame: FramePlace) {
        let lsn = frame.lsn.get().cast_signed();
        let now = (frame.first.get(), lsn, frame.utc_ns.div_euclid(NS_PER_MS));
        varint::put(now.0 - self.before.0, &mut self.bytes);
        varint::put(zigzag(now.1 - self.before.1), &mut self.bytes);
        varint::put(zigzag(now.2 - self.before.2), &mut self.bytes);
        self.before = now;
        let (first, last) = self.ends.unwrap_or((frame, FramePlace { end: frame.first, ..frame }));
        assert!(last.end == frame.first, "a run has whole frames");
        self.ends = Some((first, frame));
    }

    /// The first one, and the last one.
    fn ends(&self, span: RunSpan) -> (FramePlace, FramePlace) {
        let (first, last) = self.ends.expect("a run has frames");
        assert!((first.first, last.end) == (span.begin, span.end), "a run has whole frames");
        (first, last)
    }
}

#[cfg(test)]
mod tests;
