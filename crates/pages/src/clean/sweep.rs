//! Brings pages forward, one after the other, by one walk through the runs.
//!
//! Promise: a page that was handed in sound or as nothing is at the archive's end afterwards,
//! whatever it was built from, or it is said that it cannot be. Where parts of runs are passed that
//! cannot be read, that is so of pages with records nowhere in them.
//! Never: reads or writes a page file; builds upon a page that its records do not follow.

use std::fmt;
use std::sync::Arc;

use crate::archive::Archive;
use crate::archive::fresh::Fresh;
use crate::archive::merged::Merged;
use crate::archive::page_records::PageRecords;
use crate::archive::run_format::NO_PAGE;
use crate::clean::order::Plan;
use crate::error::RunFault;
use crate::page::Page;
use crate::page::apply::{Contents, apply};
use crate::repair::replay::{Upto, replay};
use crate::repair::view::View;
use crate::stream::record::parse;
use crate::stream::rsn::{PageNumber, Rsn};

/// A walk through the records of an archive from a place on, in the order of their pages.
pub(crate) struct Sweep {
    view: View,
    records: Merged,
    contents: Arc<dyn Contents>,
    gathered: PageRecords,
    plan: Plan,
}

/// What became of a page.
#[derive(Debug)]
pub(crate) enum Brought {
    /// It has got to this record, its newest in the archive.
    Forward(Rsn),
    /// So it has, but it was not what its records follow, and was built from nothing.
    Rebuilt(Rsn),
    /// The archive has nothing of it.
    Nothing,
    /// It should have got to this record, and cannot be built.
    Lost(Rsn),
}

impl Sweep {
    /// A walk through the records that stand at `from` or behind it, of pages from `page` on.
    pub(crate) fn new(
        archive: Archive,
        page: PageNumber,
        from: Rsn,
        contents: Arc<dyn Contents>,
    ) -> Result<Sweep, RunFault> {
        let records = Merged::new(archive.runs(), page, from)?;
        let plan = Plan::whole(archive.end().unwrap_or(Rsn::FIRST));
        Ok(Sweep::of(archive, records, contents, plan))
    }

    /// A walk through all pages, as far as their records can be read, but for those that the plan
    /// leaves out.
    pub(crate) fn readable(
        archive: Archive,
        from: Rsn,
        contents: Arc<dyn Contents>,
        plan: Plan,
    ) -> Sweep {
        let records = Merged::readable(archive.runs(), PageNumber(1), from);
        let mut sweep = Sweep::of(archive, records, contents, plan);
        sweep.leave_out().expect("what cannot be read is passed");
        sweep
    }

    fn of(archive: Archive, records: Merged, contents: Arc<dyn Contents>, plan: Plan) -> Sweep {
        let end = archive.end().unwrap_or(Rsn::FIRST);
        let view = View::new(archive, Fresh::new(end));
        Sweep { view, records, contents, gathered: PageRecords::default(), plan }
    }

    /// What is left out, and why.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Goes on to a page that is not left out.
    fn leave_out(&mut self) -> Result<(), RunFault> {
        while self.records.current().is_some_and(|entry| self.plan.leaves_out(entry.page)) {
            self.records.advance()?;
        }
        Ok(())
    }

    /// Whether parts of runs were passed so far, which may have records of any page.
    pub(crate) fn has_passed(&self) -> bool {
        self.passed() != Rsn::NONE
    }

    /// Behind all records that may have been passed so far.
    pub(crate) fn passed(&self) -> Rsn {
        self.records.passed()
    }

    /// The archive that is walked through.
    pub(crate) fn archive(&self) -> &Archive {
        self.view.archive()
    }

    /// The next page that has records.
    pub(crate) fn next_page(&self) -> Option<PageNumber> {
        let entry = self.records.current().filter(|entry| entry.page != NO_PAGE);
        entry.map(|entry| entry.page)
    }

    /// Brings a page to the archive's end, from what it is or from nothing. None of its records
    /// must have been passed, nor those of a page behind it.
    ///
    /// After a fault the walk is of no more use.
    pub(crate) fn bring(
        &mut self,
        number: PageNumber,
        page: &mut Page,
    ) -> Result<Brought, RunFault> {
        let (mut newest, mut follows) = (page.rsn(), true);
        while let Some(entry) = self.records.current().filter(|entry| entry.page == number) {
            newest = newest.max(entry.rsn);
            let record = parse(entry.rsn, entry.bytes).expect("a scan parses what it finds");
            follows = follows && apply(page, &record, &*self.contents).is_ok();
            self.records.advance()?;
        }
        self.leave_out()?;
        if follows && page.rsn() != Rsn::NONE {
            return Ok(Brought::Forward(newest));
        }
        Ok(self.rebuild(number, page, newest))
    }

    /// Builds a page from nothing.
    fn rebuild(&mut self, number: PageNumber, page: &mut Page, newest: Rsn) -> Brought {
        page.clear();
        let (view, contents) = (&self.view, &*self.contents);
        match replay(page, number, Upto::Newest, view, contents, &mut self.gathered) {
            Err(_) => Brought::Lost(newest),
            Ok(Rsn::NONE) => Brought::Nothing,
            Ok(rsn) => Brought::Rebuilt(rsn),
        }
    }
}

impl fmt::Debug for Sweep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sweep").field("next", &self.next_page()).finish_non_exhaustive()
    }
}
