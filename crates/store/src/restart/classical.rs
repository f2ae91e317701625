//! Checkpoints, cleaning and restarts as they are without a log that tells all, for comparison.
//!
//! Byte table: FORMAT.md, "Survey".
//!
//! Promise: what a survey says of a page was so while that was latched, and of a lock while its
//! part of the locks was held; a classical restart leaves nothing to be done later.
//! Never: happens, unless a store is configured so; is what a restart begins with.
//!
//! A checkpoint of the classical kind asks those who know: the buffer for the pages that are dirty,
//! the locks for what transactions have changed (Mohan et al.: "ARIES", TODS 1992, section 5.4). It
//! may take as many records as it needs, and what it says is not of one moment.

use std::sync::atomic::Ordering;

use holdfast_pages::{
    CheckpointError, CleanError, FetchError, Frames, Page, PageNumber, Rsn, SURVEY, Slot, What,
    varint,
};

use crate::engine::Engine;
use crate::face::config::{Checkpoints, Cleaner};
use crate::locks::names::Name;
use crate::pool::FixError;
use crate::transaction_error::TransactionError;

/// Pages, or locks, that one record tells of.
const PER_RECORD: usize = 1024;

/// What frames and locks say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Dirty pages, and the last record of each.
    pub(crate) pages: Vec<(PageNumber, Rsn)>,
    /// Who may change what.
    pub(crate) locks: Vec<(Slot, Name)>,
}

impl Engine {
    /// A checkpoint of the kind that is configured. False if there was nothing to note.
    pub(crate) fn checkpoint(&self) -> Result<bool, CheckpointError> {
        match self.checkpoints {
            Checkpoints::Decoupled | Checkpoints::Reread => self.pages.checkpoint(),
            Checkpoints::Classical => self.put_survey(&self.survey()),
        }
    }

    /// A step of cleaning, of the kind that is configured. True if there was something to do.
    pub(crate) fn clean(&self) -> Result<bool, CleanError> {
        match self.cleaner {
            Cleaner::Decoupled => self.pages.clean(),
            Cleaner::Classical => self.pages.clean_from(self),
        }
    }

    /// Asks every frame and every lock.
    pub(crate) fn survey(&self) -> Survey {
        let (mut survey, cleaned) = (Survey::default(), self.pages.cleaned());
        let latches = self.pool.survey(|page| {
            if page.rsn() >= cleaned {
                survey.pages.push((page.number(), page.rsn()));
            }
        });
        self.surveyed.fetch_add(latches, Ordering::Relaxed);
        self.locks.survey(|slot, name| survey.locks.push((slot, name)));
        survey.pages.sort_unstable();
        survey.locks.sort_unstable();
        survey
    }
}

impl Frames for Engine {
    fn copy(&self, number: PageNumber) -> Option<Page> {
        let page = self.pool.copy(number)?;
        self.copied.fetch_add(1, Ordering::Relaxed);
        Some(page)
    }
}

impl Engine {
    fn put_survey(&self, survey: &Survey) -> Result<bool, CheckpointError> {
        let pages = survey.pages.chunks(PER_RECORD).map(|pages| (pages, &[][..]));
        let locks = survey.locks.chunks(PER_RECORD).map(|locks| (&[][..], locks));
        let mut bytes = Vec::new();
        for (pages, locks) in pages.chain(locks) {
            bytes.clear();
            put_part(pages, locks, &mut bytes);
            self.put(&What::Checkpoint(&bytes))?;
        }
        Ok(!survey.pages.is_empty() || !survey.locks.is_empty())
    }

    /// Brings every page below `next` up to date that is not, in order.
    pub(crate) fn bring_all(&self, next: PageNumber) -> Result<(), TransactionError> {
        let stale = (1..next.get()).map(PageNumber).filter(|page| self.pages.is_stale(*page));
        for page in stale {
            self.pool.read(page).map_err(|error| match error {
                FixError::Below(error) => TransactionError::Page(error),
                FixError::NoSuchPage(page) => TransactionError::Page(FetchError::NoSuchPage(page)),
                FixError::NoFrame => TransactionError::PoolTooSmall,
            })?;
        }
        Ok(())
    }

    /// Rolls back every loser.
    pub(crate) fn undo_all(&self) -> Result<(), TransactionError> {
        while self.losers.step(&self.locks, &self.trees())? {}
        Ok(())
    }
}

fn put_part(pages: &[(PageNumber, Rsn)], locks: &[(Slot, Name)], out: &mut Vec<u8>) {
    out.push(SURVEY);
    varint::put(pages.len() as u64, out);
    for (page, rsn) in pages {
        varint::put(page.get(), out);
        varint::put(rsn.get(), out);
    }
    varint::put(locks.len() as u64, out);
    for (slot, name) in locks {
        varint::put(slot.0.into(), out);
        out.extend_from_slice(&name.get().to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
