//! The records of several runs as one sequence, sorted by page and place.
//!
//! Promise: each record of each run comes, once, in order, from a page and a place on; a part of a
//! run that cannot be read ends the walk, or is passed and told, as whoever walks wants it.
//! Never: keeps more than a block of each run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::archive::run_reader::{Run, RunEntry, RunScan};
use crate::error::RunFault;
use crate::stream::rsn::{PageNumber, Rsn};

/// A walk through several runs at once.
#[derive(Debug)]
pub(crate) struct Merged {
    scans: Vec<RunScan>,
    /// Where each scan has got to that is not at its end; the least comes first.
    heads: BinaryHeap<Reverse<(PageNumber, Rsn, usize)>>,
    page: PageNumber,
    from: Rsn,
    /// Behind all records that may have been passed, since they cannot be read; none if the walk
    /// ends where that is so.
    passed: Option<Rsn>,
}

impl Merged {
    /// The records of these runs that stand at `from` or behind it, of pages from `page` on.
    pub(crate) fn new(runs: &[Arc<Run>], page: PageNumber, from: Rsn) -> Result<Merged, RunFault> {
        Merged::walk(runs, page, from, None)
    }

    /// The same, as far as they can be read.
    pub(crate) fn readable(runs: &[Arc<Run>], page: PageNumber, from: Rsn) -> Merged {
        Merged::walk(runs, page, from, Some(Rsn::NONE)).expect("what cannot be read is passed")
    }

    fn walk(
        runs: &[Arc<Run>],
        page: PageNumber,
        from: Rsn,
        passed: Option<Rsn>,
    ) -> Result<Merged, RunFault> {
        let (scans, heads) = (Vec::new(), BinaryHeap::new());
        let mut merged = Merged { scans, heads, page, from, passed };
        for run in runs.iter().filter(|run| run.span().end > from) {
            match run.scan_before(page) {
                Ok(scan) => merged.scans.push(scan),
                Err(fault) => merged.pass(fault, run.span().end)?,
            }
        }
        (0..merged.scans.len()).try_for_each(|scan| merged.go_on(scan))?;
        Ok(merged)
    }

    /// Behind all records that may have been passed so far; [`Rsn::NONE`] if none were.
    pub(crate) fn passed(&self) -> Rsn {
        self.passed.unwrap_or(Rsn::NONE)
    }

    fn pass(&mut self, fault: RunFault, end: Rsn) -> Result<(), RunFault> {
        let passed = self.passed.as_mut().ok_or(fault)?;
        *passed = end.max(*passed);
        Ok(())
    }

    /// The record that the walk has got to; none at its end.
    pub(crate) fn current(&self) -> Option<RunEntry<'_>> {
        let Reverse((_, _, scan)) = self.heads.peek()?;
        self.scans[*scan].current()
    }

    /// Goes on to the next record. After a fault the walk is of no more use.
    pub(crate) fn advance(&mut self) -> Result<(), RunFault> {
        let Some(Reverse((_, _, scan))) = self.heads.pop() else { return Ok(()) };
        self.go_on(scan)
    }

    /// Brings a scan to its next record that is wanted, and says where that is.
    fn go_on(&mut self, number: usize) -> Result<(), RunFault> {
        loop {
            let scan = &mut self.scans[number];
            if let Err(fault) = scan.advance() {
                let end = scan.end();
                self.pass(fault, end)?;
                continue;
            }
            let Some(entry) = scan.current() else { return Ok(()) };
            if entry.page >= self.page && entry.rsn >= self.from {
                self.heads.push(Reverse((entry.page, entry.rsn, number)));
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
