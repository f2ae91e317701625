//! The records of several runs as one sequence, sorted by page and place.
//!
//! Promise: each record of each run comes, once, in order, from a page and a place on.
//! Never: keeps more than a block of each run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::error::RunFault;
use crate::rsn::{PageNumber, Rsn};
use crate::run_reader::{Run, RunEntry, RunScan};

/// A walk through several runs at once.
#[derive(Debug)]
pub(crate) struct Merged {
    scans: Vec<RunScan>,
    /// Where each scan has got to that is not at its end; the least comes first.
    heads: BinaryHeap<Reverse<(PageNumber, Rsn, usize)>>,
    from: Rsn,
}

impl Merged {
    /// The records of these runs that stand at `from` or behind it, of pages from `page` on.
    pub(crate) fn new(runs: &[Arc<Run>], page: PageNumber, from: Rsn) -> Result<Merged, RunFault> {
        let scans = runs.iter().filter(|run| run.span().end > from).map(|run| run.scan(page));
        let scans = scans.collect::<Result<Vec<_>, _>>()?;
        let mut merged = Merged { scans, heads: BinaryHeap::new(), from };
        (0..merged.scans.len()).try_for_each(|scan| merged.put_head(scan))?;
        Ok(merged)
    }

    /// The record that the walk has got to; none at its end.
    pub(crate) fn current(&self) -> Option<RunEntry<'_>> {
        let Reverse((_, _, scan)) = self.heads.peek()?;
        self.scans[*scan].current()
    }

    /// Goes on to the next record. After a fault the walk is of no more use.
    pub(crate) fn advance(&mut self) -> Result<(), RunFault> {
        let Some(Reverse((_, _, scan))) = self.heads.pop() else { return Ok(()) };
        self.scans[scan].advance()?;
        self.put_head(scan)
    }

    /// Says where a scan has got to, past what is not wanted.
    fn put_head(&mut self, number: usize) -> Result<(), RunFault> {
        let scan = &mut self.scans[number];
        while scan.current().is_some_and(|entry| entry.rsn < self.from) {
            scan.advance()?;
        }
        if let Some(entry) = scan.current() {
            self.heads.push(Reverse((entry.page, entry.rsn, number)));
        }
        Ok(())
    }
}
