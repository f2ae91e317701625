//! Pages written as they are in memory, the way of cleaners that have no archive; for comparison.
//!
//! Promise: a page is written as it was while nobody changed it, with no record that is not
//! archived; one that is in no frame is loaded, so that what is said to be clean is.
//! Never: happens, unless somebody asks for it; has a latch while anything is written.

use std::collections::BTreeSet;

use crate::archive::archiver::Archiver;
use crate::error::CleanError;
use crate::page::Page;
use crate::repair::fetch::Fetch;
use crate::stream::rsn::{PageNumber, Rsn};

/// Pages that are copied before any of them is written: 8 MiB.
const BATCH_PAGES: usize = 1024;

/// Pages in memory, which may be newer than anybody was told.
pub trait Frames {
    /// The page as it is in its frame, with whatever latch that takes; none if it is in none.
    fn copy(&self, number: PageNumber) -> Option<Page>;
}

/// What a cleaner needs that does not read the archive.
pub(crate) struct Framed<'a> {
    pub(crate) frames: &'a dyn Frames,
    pub(crate) fetch: &'a Fetch,
    pub(crate) archiver: &'a Archiver,
}

impl Framed<'_> {
    /// Pages with records that their images lack.
    pub(super) fn dirty(&self) -> BTreeSet<PageNumber> {
        let pages = (1..self.fetch.follower.next_page().get()).map(PageNumber);
        pages.filter(|page| self.fetch.stale.is_dirty(*page)).collect()
    }

    /// Copies of the first of these pages, which are on the list no more; every record of them is
    /// archived.
    pub(super) fn copies(&self, left: &mut BTreeSet<PageNumber>) -> Result<Vec<Page>, CleanError> {
        let numbers: Vec<PageNumber> = left.iter().copied().take(BATCH_PAGES).collect();
        let mut pages = Vec::new();
        for number in numbers {
            left.remove(&number);
            pages.push(self.page(number)?);
        }
        // One that has just begun, and holds nothing yet.
        pages.retain(|page| page.rsn() != Rsn::NONE);
        let newest = pages.iter().map(Page::rsn).max().unwrap_or(Rsn::NONE);
        self.archive(newest)?;
        Ok(pages)
    }

    fn page(&self, number: PageNumber) -> Result<Page, CleanError> {
        if let Some(page) = self.frames.copy(number) {
            return Ok(page);
        }
        let mut page = Page::zeroed();
        self.fetch.load(number, &mut page).map_err(CleanError::Fetch)?;
        Ok(page)
    }

    /// Sees to it that this record is archived.
    fn archive(&self, rsn: Rsn) -> Result<(), CleanError> {
        if rsn >= self.fetch.views.archived() {
            self.fetch
                .stream
                .sync(rsn.advance(1))
                .map_err(|error| CleanError::NotArchived(error.into()))?;
            self.archiver.close_window().map_err(CleanError::NotArchived)?;
        }
        Ok(())
    }
}
