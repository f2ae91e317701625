//! Reads a run: the records of one page, or all of them in order.
//!
//! Byte table: FORMAT.md, "Run".
//!
//! Promise: what is read was written so, or it is said which part of the run is damaged; a run
//! whose index is damaged still opens, and says so when it is asked; one that is lost does so, too.
//! Never: keeps blocks in memory; writes.

use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use holdfast_io::{Files, OpenFile, OpenHow};
use holdfast_log::Lsn;

use crate::archive::bloom::Bloom;
use crate::archive::page_records::PageRecords;
use crate::archive::run_block::Block;
use crate::archive::run_format::{
    BLOOM, BlockPlace, CHECK_BYTES, FOOTER_BYTES, FRAMES, Footer, FooterFault, HEAD, INDEX,
    INDEX_ENTRY_BYTES, PARTS, RunSpan, VERSION, check_of, page_of, take_entry, unzigzag,
};
use crate::error::{RunFault, RunPart};
use crate::stream::frame_index::FramePlace;
use crate::stream::record::Record;
use crate::stream::rsn::{PageNumber, Rsn};
use crate::stream::tag::Tag;
use crate::varint;

const NS_PER_MS: i64 = 1_000_000;
/// What each part is called when it is damaged.
const NAMES: [RunPart; 4] = [RunPart::State, RunPart::Frames, RunPart::Index, RunPart::Bloom];

/// An open run. Its file can be removed meanwhile. All calls may come from any thread.
pub struct Run {
    tag: Tag,
    span: RunSpan,
    /// None if the run is lost.
    whole: Option<Whole>,
}

/// The file of a run that says where everything is.
struct Whole {
    file: Arc<dyn OpenFile>,
    footer: Footer,
    directory: OnceLock<Directory>,
}

/// What says where the records of a page are.
struct Directory {
    index: Vec<BlockPlace>,
    bloom: Bloom,
}

impl Run {
    /// Opens the run of this span in the directory that `files` has.
    ///
    /// # Errors
    /// See [`RunFault`].
    pub fn open(files: &dyn Files, span: RunSpan, tag: Tag) -> Result<Run, RunFault> {
        let file = files.open(&span.path(), OpenHow::default())?;
        let file_bytes = file.metadata()?.size_bytes;
        let at = file_bytes.checked_sub(FOOTER_BYTES as u64);
        let at = at.ok_or(RunFault::Damaged(RunPart::Footer))?;
        let mut bytes = [0; FOOTER_BYTES];
        read_whole(&*file, &mut bytes, at, RunPart::Footer)?;
        let footer = Footer::parse(&bytes, at, tag).map_err(|fault| match fault {
            FooterFault::Damaged => RunFault::Damaged(RunPart::Footer),
            FooterFault::OtherVersion(found) => RunFault::OtherVersion { found, known: VERSION },
        })?;
        if footer.span != span {
            return Err(RunFault::Damaged(RunPart::Footer));
        }
        let whole = Whole { file, footer, directory: OnceLock::new() };
        Ok(Run { tag, span, whole: Some(whole) })
    }

    /// What stands for a run that is missing, or that does not say where anything is: whoever asks
    /// it for records is told so.
    #[must_use]
    pub fn lost(span: RunSpan, tag: Tag) -> Run {
        Run { tag, span, whole: None }
    }

    /// Whether nothing is left of it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.whole.is_none()
    }

    /// Which records it has.
    #[must_use]
    pub fn span(&self) -> RunSpan {
        self.span
    }

    /// Whether records are left out, each of which an image of its page replaces that is not. Of a
    /// lost run all are.
    #[must_use]
    pub fn is_trimmed(&self) -> bool {
        self.whole.as_ref().is_none_or(|whole| whole.footer.is_trimmed)
    }

    /// When its last frame was made, in nanoseconds since 1970, UTC; before everything if it is
    /// lost.
    pub(crate) fn last_utc_ns(&self) -> i64 {
        self.whole.as_ref().map_or(i64::MIN, |whole| whole.footer.last_utc_ns)
    }

    /// How long its file is, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = |whole: &Whole| whole.footer.parts[PARTS] + FOOTER_BYTES as u64;
        self.whole.as_ref().map_or(0, bytes)
    }

    fn whole(&self) -> Result<&Whole, RunFault> {
        let RunSpan { begin, end, .. } = self.span;
        self.whole.as_ref().ok_or(RunFault::Lost { begin, end })
    }

    /// What a fold of all records before the run gives, as it was handed to the writer.
    ///
    /// # Errors
    /// See [`RunFault`].
    pub fn state(&self) -> Result<Vec<u8>, RunFault> {
        self.part(HEAD)
    }

    /// The frames that its records came in, in order. A frame ends where the next begins.
    ///
    /// # Errors
    /// See [`RunFault`].
    pub fn frames(&self) -> Result<Vec<FramePlace>, RunFault> {
        let mut frames = Vec::new();
        self.each_frame(|frame| frames.push(frame))?;
        Ok(frames)
    }

    /// Shows each of its frames, in order, as [`Run::frames`] tells them.
    ///
    /// # Errors
    /// See [`RunFault`]; some of them were shown then.
    pub(crate) fn each_frame(&self, each: impl FnMut(FramePlace)) -> Result<(), RunFault> {
        let bytes = self.part(FRAMES)?;
        frames_in(&bytes, &self.whole()?.footer, each).ok_or(RunFault::Damaged(RunPart::Frames))
    }

    /// All of it as one frame, which is what is left of those where no moment is kept.
    ///
    /// # Errors
    /// See [`RunFault`].
    pub(crate) fn as_frame(&self) -> Result<FramePlace, RunFault> {
        let Footer { span, begin_lsn, end_lsn, last_utc_ns, .. } = self.whole()?.footer;
        let (first, end) = (span.begin, span.end);
        Ok(FramePlace { first, end, lsn: begin_lsn, lsn_end: end_lsn, utc_ns: last_utc_ns })
    }

    /// Adds to `into` the records of a page that stand above `above` and not above `upto`; once
    /// there is an image among them, not necessarily what is before it.
    ///
    /// # Errors
    /// See [`RunFault`]; `into` may have some of them then.
    pub fn gather(
        &self,
        page: PageNumber,
        above: Rsn,
        upto: Rsn,
        into: &mut PageRecords,
    ) -> Result<(), RunFault> {
        let directory = self.directory()?;
        if !directory.bloom.may_have(page) {
            return Ok(());
        }
        let blocks =
            directory.index.partition_point(|place| (place.page, place.rsn) <= (page, upto));
        let mut block = Block::default();
        for number in (0..blocks).rev() {
            self.read_block(number, &mut block)?;
            let mut entries = block.records();
            while let Some((record, _)) = self.next_entry(&mut entries)? {
                let at = (page_of(&record), record.rsn);
                if at > (page, upto) {
                    break;
                }
                if at > (page, above) {
                    into.push(&record);
                }
            }
            let first = directory.index[number];
            if into.has_image() || (first.page, first.rsn) <= (page, above) {
                break;
            }
        }
        Ok(())
    }

    /// All records of pages from `from` on, sorted by page and place.
    ///
    /// # Errors
    /// See [`RunFault`].
    pub fn scan(self: &Arc<Run>, from: PageNumber) -> Result<RunScan, RunFault> {
        let mut scan = self.scan_before(from)?;
        scan.advance()?;
        while scan.current().is_some_and(|entry| entry.page < from) {
            scan.advance()?;
        }
        Ok(scan)
    }

    /// A walk that has not begun, and that comes to the records of pages from `from` on, and maybe
    /// to some before.
    pub(crate) fn scan_before(self: &Arc<Run>, from: PageNumber) -> Result<RunScan, RunFault> {
        let index = &self.directory()?.index;
        let block = index.partition_point(|place| place.page < from).saturating_sub(1);
        let read = Block::default();
        Ok(RunScan { run: Arc::clone(self), block, read, at: 0, current: None })
    }

    /// Whether all of it reads as it was written.
    pub(crate) fn check(self: &Arc<Run>) -> Result<(), RunFault> {
        drop((self.state()?, self.frames()?));
        let mut scan = self.scan(PageNumber(1))?;
        while scan.current().is_some() {
            scan.advance()?;
        }
        Ok(())
    }

    /// Reads and checks a block. After a fault there is nothing in it.
    fn read_block(&self, number: usize, into: &mut Block) -> Result<(), RunFault> {
        let (whole, index) = (self.whole()?, &self.directory()?.index);
        let from = index[number].offset;
        let end = index.get(number + 1).map_or(whole.footer.parts[HEAD], |place| place.offset);
        let room = into.room((end - from) as usize);
        read_whole(&*whole.file, room, from, RunPart::Block(from))?;
        let check = |bytes: &[u8]| check_of(self.tag, self.span().begin, from, bytes);
        let opened = into.open(whole.footer.version, check);
        opened.ok_or(RunFault::Damaged(RunPart::Block(from)))
    }

    /// Takes an entry off the front of a block; none if there are no more.
    fn next_entry<'a>(
        &self,
        rest: &mut &'a [u8],
    ) -> Result<Option<(Record<'a>, &'a [u8])>, RunFault> {
        if rest.is_empty() {
            return Ok(None);
        }
        let entry = take_entry(self.span().begin, rest);
        entry.map(Some).ok_or(RunFault::Damaged(RunPart::Entry))
    }

    /// Index and filter, read when they are first asked for.
    fn directory(&self) -> Result<&Directory, RunFault> {
        let whole = self.whole()?;
        if let Some(directory) = whole.directory.get() {
            return Ok(directory);
        }
        let index = index_of(&self.part(INDEX)?, whole.footer.parts[HEAD]);
        let index = index.ok_or(RunFault::Damaged(RunPart::Index))?;
        let bloom = Bloom::from_bytes(self.part(BLOOM)?);
        let bloom = bloom.ok_or(RunFault::Damaged(RunPart::Bloom))?;
        Ok(whole.directory.get_or_init(|| Directory { index, bloom }))
    }

    /// Reads and checks one of the parts behind the blocks.
    fn part(&self, part: usize) -> Result<Vec<u8>, RunFault> {
        let Whole { file, footer, .. } = self.whole()?;
        let (from, end) = (footer.parts[part], footer.parts[part + 1]);
        let mut bytes = vec![0; (end - from) as usize];
        read_whole(&**file, &mut bytes, from, NAMES[part])?;
        let check = check_of(self.tag, self.span().begin, from, &bytes);
        let sound = check == footer.checks[part];
        if sound { Ok(bytes) } else { Err(RunFault::Damaged(NAMES[part])) }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Run").field("span", &self.span()).finish_non_exhaustive()
    }
}

/// A record of a run, as it stands in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEntry<'a> {
    /// The page that it is about; [`crate::NO_PAGE`] if it is about none.
    pub page: PageNumber,
    /// Where it stands.
    pub rsn: Rsn,
    /// The record.
    pub bytes: &'a [u8],
}

/// A walk through a run.
#[derive(Debug)]
pub struct RunScan {
    run: Arc<Run>,
    /// The block after the one that is read.
    block: usize,
    read: Block,
    /// Where in the block's records the next entry begins.
    at: usize,
    /// The entry that the walk has got to, and how many bytes before `at` its record begins.
    current: Option<(PageNumber, Rsn, usize)>,
}

impl RunScan {
    /// The record that the walk has got to; none at its end.
    #[must_use]
    pub fn current(&self) -> Option<RunEntry<'_>> {
        let (page, rsn, bytes) = self.current?;
        Some(RunEntry { page, rsn, bytes: &self.read.records()[self.at - bytes..self.at] })
    }

    /// Where the run ends.
    pub(crate) fn end(&self) -> Rsn {
        self.run.span().end
    }

    /// Goes on to the next record.
    ///
    /// # Errors
    /// See [`RunFault`]; the next call goes on behind the block that is damaged.
    pub fn advance(&mut self) -> Result<(), RunFault> {
        self.current = None;
        if self.at >= self.read.records().len() {
            if self.block == self.run.directory()?.index.len() {
                return Ok(());
            }
            let read = self.run.read_block(self.block, &mut self.read);
            (self.block, self.at) = (self.block + 1, 0);
            read?;
        }
        let (mut rest, end) = (&self.read.records()[self.at..], self.read.records().len());
        let entry = self.run.next_entry(&mut rest).inspect_err(|_| self.at = end)?;
        self.current = entry.map(|(record, bytes)| (page_of(&record), record.rsn, bytes.len()));
        self.at = end - rest.len();
        Ok(())
    }
}

/// The index in these bytes, if its blocks follow one another up to `end`.
fn index_of(bytes: &[u8], end: u64) -> Option<Vec<BlockPlace>> {
    let entry = |bytes: &[u8]| Some(BlockPlace::parse(bytes.try_into().ok()?));
    let index: Vec<_> = bytes.chunks(INDEX_ENTRY_BYTES).map(entry).collect::<Option<_>>()?;
    let room = |from: u64, end: u64| end.checked_sub(from).is_some_and(|b| b > CHECK_BYTES as u64);
    let apart = index.windows(2).all(|two| room(two[0].offset, two[1].offset));
    let last = index.last().is_none_or(|place| room(place.offset, end));
    (apart && last && index.is_sorted()).then_some(index)
}

/// Shows the frames in these bytes; none if they are not those of a run with this footer.
fn frames_in(mut rest: &[u8], footer: &Footer, mut each: impl FnMut(FramePlace)) -> Option<()> {
    let (mut last, mut before) = (None::<FramePlace>, (0_u64, 0_i64, 0_i64));
    while !rest.is_empty() {
        let first = before.0.checked_add(varint::take(&mut rest)?)?;
        let lsn = before.1.checked_add(unzigzag(varint::take(&mut rest)?))?;
        let ms = before.2.checked_add(unzigzag(varint::take(&mut rest)?))?;
        before = (first, lsn, ms);
        let (first, lsn) = (Rsn(first), Lsn(lsn.cast_unsigned()));
        let utc_ns = ms.checked_mul(NS_PER_MS)?;
        let (end, lsn_end) = (footer.span.end, footer.end_lsn);
        let ended = last.replace(FramePlace { first, end, lsn, lsn_end, utc_ns });
        ended.into_iter().for_each(|last| each(FramePlace { end: first, lsn_end: lsn, ..last }));
    }
    last.into_iter().for_each(each);
    Some(())
}

/// Fills `into`, or says that the file is too short for this part.
fn read_whole(
    file: &dyn OpenFile,
    into: &mut [u8],
    at: u64,
    part: RunPart,
) -> Result<(), RunFault> {
    let found = file.read_full_at(into, at)?;
    if found == into.len() { Ok(()) } else { Err(RunFault::Damaged(part)) }
}

impl From<io::Error> for RunFault {
    fn from(error: io::Error) -> RunFault {
        RunFault::Io(error)
    }
}
