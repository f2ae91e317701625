//! One run of all that a backup has: copies of its pages, and the records behind them.
//!
//! Byte table: FORMAT.md, "Run"; what stands there is in "Run of a backup".
//!
//! Promise: whatever the backup's pages and runs lead to can be built from this run alone.
//! Never: builds a page; has what came before the pages.

use std::sync::Arc;

use holdfast_io::Files;
use holdfast_log::Lsn;

use crate::archive::Archive;
use crate::archive::merged::Merged;
use crate::archive::run::RunWriter;
use crate::archive::run_format::RunSpan;
use crate::backup::moment::Moment;
use crate::canary::{Invariant, holds};
use crate::error::RestoreError;
use crate::page::page_file::PageFile;
use crate::page::{PAGE_BYTES, Page};
use crate::progress::Progress;
use crate::restart::analysis_state::State;
use crate::stream::frame_index::FramePlace;
use crate::stream::record::What;
use crate::stream::rsn::{PageNumber, Rsn};
use crate::stream::tag::Tag;

/// Progress is told after so many pages.
const TELL_EVERY_PAGES: u64 = 64;

/// A run as it gets its entries.
type Writer = RunWriter<Arc<dyn Files>>;

/// What a backup has, up to a moment.
pub(crate) struct BackupRun<'a> {
    /// Its runs. All of a page's records are there that stand behind its copy.
    pub(crate) archive: &'a Archive,
    /// Its pages.
    pub(crate) pages: &'a PageFile,
    /// Where the run is to end. No page is newer.
    pub(crate) moment: Moment,
}

impl BackupRun<'_> {
    /// Writes the run into the directory that `to` has. `state` is that of the moment.
    pub(crate) fn write(
        &self,
        state: &State,
        to: &Arc<dyn Files>,
        tag: Tag,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<(), RestoreError> {
        let mut run = RunWriter::begin(Arc::clone(to), tag, self.span())?;
        run.trim();
        let mut records = Merged::new(self.archive.runs(), PageNumber(1), Rsn::FIRST)?;
        let (pages, mut buffer) = (state.next_page().get(), Vec::new());
        let total_bytes = pages * PAGE_BYTES as u64;
        let mut progress = Progress { done_bytes: 0, total_bytes };
        for number in (1..pages).map(PageNumber) {
            let imaged = self.put_page(number, &mut run, &mut buffer)?;
            self.put_records(number, imaged, &mut records, &mut run)?;
            if number.get().is_multiple_of(TELL_EVERY_PAGES) {
                progress.advance(TELL_EVERY_PAGES * PAGE_BYTES as u64, tell);
            }
        }
        buffer.clear();
        state.put_whole(&mut buffer);
        run.finish(&buffer, &[self.frame()])?;
        progress.advance(total_bytes - progress.done_bytes, tell);
        Ok(())
    }

    /// As wide as a merge of all runs would be.
    fn span(&self) -> RunSpan {
        let levels = self.archive.runs().iter().map(|run| run.span().level);
        let level = levels.max().map_or(0, |level| level + 1);
        RunSpan { level, begin: Rsn::FIRST, end: self.moment.rsn }
    }

    /// The frames before the moment, as one.
    fn frame(&self) -> FramePlace {
        let Moment { rsn, lsn, utc_ns } = self.moment;
        FramePlace { first: Rsn::FIRST, end: rsn, lsn: Lsn(0), lsn_end: lsn, utc_ns }
    }

    /// Puts a page's copy, and returns which record it has got to. One that is damaged is none; it
    /// may be that its records do without.
    fn put_page(
        &self,
        number: PageNumber,
        run: &mut Writer,
        buffer: &mut Vec<u8>,
    ) -> Result<Rsn, RestoreError> {
        let mut page = Page::zeroed();
        let is_sound = self.pages.read(number, &mut page).is_ok();
        let has_place = (Rsn::FIRST..self.moment.rsn).contains(&page.rsn());
        if !is_sound || !has_place || !holds(Invariant::BackedUpPagesAreArchived) {
            return Ok(Rsn::NONE);
        }
        let what = What::Copy { page: number, bytes: page.copy() };
        buffer.clear();
        what.put(page.rsn(), buffer);
        run.push(number, page.rsn(), buffer)?;
        Ok(page.rsn())
    }

    /// Puts the records of a page that stand behind its copy.
    fn put_records(
        &self,
        number: PageNumber,
        imaged: Rsn,
        records: &mut Merged,
        run: &mut Writer,
    ) -> Result<(), RestoreError> {
        while let Some(entry) = records.current().filter(|entry| entry.page == number) {
            if imaged < entry.rsn && entry.rsn < self.moment.rsn {
                run.push(number, entry.rsn, entry.bytes)?;
            }
            records.advance()?;
        }
        Ok(())
    }
}
