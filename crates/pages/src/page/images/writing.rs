//! Says of each page that was written which record it has got to.
//!
//! Promise: a block says of each of its pages what the page file has, also after the block was
//! damaged.
//! Never: syncs a page.

use std::collections::BTreeSet;

use holdfast_io::Files;

use super::{Images, OtherVersion};
use crate::archive::Archive;
use crate::archive::merged::Merged;
use crate::error::CleanError;
use crate::page::Page;
use crate::page::page_file::PageFile;
use crate::page::versions::{UNTOLD, VERSIONS_PAGES, Versions, VersionsBlock};
use crate::restart::stale::{Imaged, PAGES_MAX};
use crate::stream::rsn::{PageNumber, Rsn};

impl Images {
    /// Says, durably, that these pages have got to these records in `pages`, and all of them are
    /// clean up to `cleaned`; they are in order. `archive` is what is written there: it tells of
    /// neighbours of which the device does not. `files` is where the versions are, should they have
    /// to be opened again.
    pub(crate) fn write(
        &self,
        written: &[(PageNumber, Rsn)],
        cleaned: Rsn,
        archive: &Archive,
        pages: &PageFile,
        files: &dyn Files,
    ) -> Result<(), CleanError> {
        self.versions.renew().map_err(CleanError::Versions)?;
        // In the place of page 0.
        let age = (PageNumber::NONE, cleaned);
        let written: Vec<_> = [age].into_iter().chain(written.iter().copied()).collect();
        for some in written.chunk_by(|one, other| block_of(one.0) == block_of(other.0)) {
            self.write_block(some, archive, pages)?;
        }
        let Err(error) = self.versions.sync() else { return Ok(()) };
        self.versions.reopen(files).map_err(CleanError::Reopen)?;
        Err(CleanError::Versions(error))
    }

    /// Writes the block that these pages are in.
    fn write_block(
        &self,
        written: &[(PageNumber, Rsn)],
        archive: &Archive,
        pages: &PageFile,
    ) -> Result<(), CleanError> {
        let block = block_of(written[0].0);
        let mut rsns = self.remembered(block, archive, pages)?;
        for (page, rsn) in written {
            rsns[Versions::place(*page).1] = *rsn;
        }
        let _alone = self.block.lock().expect("nothing panics with a block");
        self.versions.write(block, &rsns).map_err(CleanError::Versions)
    }

    /// What the pages of a block have got to, as far as the versions say, and else as the archive
    /// does.
    fn remembered(
        &self,
        block: u64,
        archive: &Archive,
        pages: &PageFile,
    ) -> Result<VersionsBlock, CleanError> {
        if let Some(page) = pages_of(block).find(|page| self.stale.imaged(*page) == Imaged::Unread)
        {
            let asked = self.ask(page);
            asked.map_err(|OtherVersion(found)| CleanError::OtherVersion { found })?;
        }
        let mut rsns = [Rsn::NONE; VERSIONS_PAGES];
        let mut unknown = BTreeSet::new();
        for page in pages_of(block) {
            match self.stale.imaged(page) {
                Imaged::At(rsn) => rsns[Versions::place(page).1] = rsn,
                Imaged::Unread | Imaged::Unknown => drop(unknown.insert(page)),
            }
        }
        find(unknown, archive, pages, &mut rsns);
        Ok(rsns)
    }
}

/// Finds what these pages, of one block, have got to.
fn find(
    unknown: BTreeSet<PageNumber>,
    archive: &Archive,
    pages: &PageFile,
    rsns: &mut VersionsBlock,
) {
    let (Some(first), Some(last)) = (unknown.first().copied(), unknown.last().copied()) else {
        return;
    };
    let mut records = Merged::readable(archive.runs(), first, Rsn::FIRST);
    while let Some(entry) = records.current().filter(|entry| entry.page <= last) {
        if unknown.contains(&entry.page) {
            rsns[Versions::place(entry.page).1] = entry.rsn;
        }
        records.advance().expect("what cannot be read is passed");
    }
    let (passed, mut image) = (records.passed(), Page::zeroed());
    for page in unknown {
        let rsn = &mut rsns[Versions::place(page).1];
        if *rsn < passed {
            // A newer record of it may be lost.
            *rsn = UNTOLD;
        } else if *rsn == Rsn::NONE && archive.begin() > Some(Rsn::FIRST) {
            // Its records, if it has any, are older than the archive.
            *rsn = pages.read(page, &mut image).map_or(UNTOLD, |()| image.rsn());
        }
    }
}

fn block_of(page: PageNumber) -> u64 {
    Versions::place(page).0
}

/// The pages that a block is about; there is no page 0.
fn pages_of(block: u64) -> impl Iterator<Item = PageNumber> {
    let first = block * VERSIONS_PAGES as u64;
    let end = (first + VERSIONS_PAGES as u64).min(PAGES_MAX);
    (first.max(1)..end).map(PageNumber)
}
