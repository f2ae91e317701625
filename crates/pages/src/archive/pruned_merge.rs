//! The records of several runs as one sequence, without those that no page needs any more.
//!
//! Promise: what is left out stands before an image of its page that is not, and that no later
//! record is left out which the page has had since; or it is about no page, and stands where no
//! moment is kept.
//! Never: leaves out what a page needs.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::archive::merged::Merged;
use crate::archive::run_reader::{Run, RunEntry};
use crate::error::RunFault;
use crate::stream::record::parse;
use crate::stream::rsn::{PageNumber, Rsn};

/// A walk through several runs at once, all records of it or what is left of them.
#[derive(Debug)]
pub(crate) struct PrunedMerge {
    records: Merged,
    /// Before this a page's records are left out if its image before this stands behind them.
    below: Rsn,
    /// What stands before that of the page that the walk has got to, from its newest image on.
    kept: VecDeque<(Rsn, Vec<u8>)>,
    page: PageNumber,
    has_left_out: bool,
}

impl PrunedMerge {
    /// All records of these runs, without those before `below` that an image before it replaces,
    /// or that are about no page.
    pub(crate) fn new(runs: &[Arc<Run>], below: Rsn) -> Result<PrunedMerge, RunFault> {
        let records = Merged::new(runs, PageNumber(1), Rsn::FIRST)?;
        let (kept, page) = (VecDeque::new(), PageNumber::NONE);
        let mut trimmed = PrunedMerge { records, below, kept, page, has_left_out: false };
        trimmed.look_ahead()?;
        Ok(trimmed)
    }

    /// Whether anything was left out so far.
    pub(crate) fn has_left_out(&self) -> bool {
        self.has_left_out
    }

    /// The record that the walk has got to; none at its end.
    pub(crate) fn current(&self) -> Option<RunEntry<'_>> {
        match self.kept.front() {
            Some((rsn, bytes)) => Some(RunEntry { page: self.page, rsn: *rsn, bytes }),
            None => self.records.current(),
        }
    }

    /// Goes on to the next record. After a fault the walk is of no more use.
    pub(crate) fn advance(&mut self) -> Result<(), RunFault> {
        if self.kept.pop_front().is_none() {
            self.records.advance()?;
        }
        if self.kept.is_empty() { self.look_ahead() } else { Ok(()) }
    }

    /// Gathers what is kept of the next page that has records which could be left out.
    fn look_ahead(&mut self) -> Result<(), RunFault> {
        // Transactions begin and end there, which only a moment between them needs.
        let below = self.below;
        let is_gone = |entry: &RunEntry<'_>| entry.page == crate::NO_PAGE && entry.rsn < below;
        while self.records.current().as_ref().is_some_and(is_gone) {
            self.has_left_out = true;
            self.records.advance()?;
        }
        let Some(first) = self.records.current() else { return Ok(()) };
        if first.rsn >= self.below {
            return Ok(());
        }
        self.page = first.page;
        while let Some(entry) = self.records.current() {
            if entry.page != self.page || entry.rsn >= self.below {
                break;
            }
            let record = parse(entry.rsn, entry.bytes).expect("a scan parses what it finds");
            if record.what.is_whole() {
                self.has_left_out |= !self.kept.is_empty();
                self.kept.clear();
            }
            self.kept.push_back((entry.rsn, entry.bytes.to_vec()));
            self.records.advance()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
