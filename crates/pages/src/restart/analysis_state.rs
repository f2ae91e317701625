//! What there is to know at a place of the stream, besides what pages hold.
//!
//! Promise: a function of the records before that place and of nothing else; taking them one by
//! one, or by what changed between two places (`checkpoint`), makes no difference.
//! Never: reads a record from anywhere; waits; changes when a record does not fit.

use std::collections::BTreeSet;

use crate::restart::stale::PAGES_MAX;
use crate::restart::undo::Undo;
use crate::stream::record::{PageLink, Record, What};
use crate::stream::rsn::{PageNumber, Rsn, Slot};

/// How far the numbers of new pages may run ahead of the pages whose first record is there: far
/// more than can be on their way at once. Bounds what a damaged number makes of our memory.
const PAGES_AHEAD_MAX: u64 = 1 << 20;

/// What the records before [`State::at`] come to.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) at: Rsn,
    /// Every page in the page file has all records before this.
    pub(crate) cleaned: Rsn,
    /// The first page that never was.
    pub(crate) next_page: PageNumber,
    /// Pages before that which are not in use.
    pub(crate) free: BTreeSet<PageNumber>,
    pub(crate) undo: Undo,
    /// By page: its last record, if that is not before `cleaned`; anything before that if it is.
    pub(crate) lasts: Vec<Rsn>,
    /// Where the last mark was, since which changes are kept apart.
    pub(crate) marked: Rsn,
    /// Pages with records since then, each once.
    pub(crate) touched: Vec<PageNumber>,
}

/// Why a record does not follow from those before it. They are damaged, or not of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoldFault {
    /// Records between are missing.
    Gap {
        /// Where the next one should stand.
        at: Rsn,
        /// Where it stands.
        found: Rsn,
    },
    /// A page changes that never began, or one begins far behind all others, or as a copy.
    Page(PageNumber),
    /// A transaction undoes or retells what it never did, or ends before it has undone everything.
    Undo(Slot),
    /// More is clean than there is.
    Cleaned(Rsn),
}

impl State {
    /// What there is to know before the first record.
    #[must_use]
    pub fn new() -> State {
        State {
            at: Rsn::FIRST,
            cleaned: Rsn::FIRST,
            next_page: PageNumber(1),
            free: BTreeSet::new(),
            undo: Undo::default(),
            lasts: Vec::new(),
            marked: Rsn::FIRST,
            touched: Vec::new(),
        }
    }

    /// Where the next record stands.
    #[must_use]
    #[inline]
    pub fn at(&self) -> Rsn {
        self.at
    }

    /// Every page in the page file has all records before this place.
    #[must_use]
    pub fn cleaned(&self) -> Rsn {
        self.cleaned
    }

    /// The first page that never was.
    #[must_use]
    pub fn next_page(&self) -> PageNumber {
        self.next_page
    }

    /// Pages before that which are not in use, in order.
    pub fn free(&self) -> impl Iterator<Item = PageNumber> {
        self.free.iter().copied()
    }

    /// Transactions that have changed something and not ended, in order of their slots, with the
    /// bodies of what they have not undone, oldest first.
    pub fn running(&self) -> impl Iterator<Item = (Slot, impl ExactSizeIterator<Item = &[u8]>)> {
        self.undo.running().map(|(slot, stack)| (slot, stack.bodies()))
    }

    /// Pages whose image in the page file lacks records, in order, and the last record of each.
    pub fn stale(&self) -> impl Iterator<Item = (PageNumber, Rsn)> {
        let numbered = (0..).map(PageNumber).zip(self.lasts.iter().copied());
        numbered.filter(|(_, last)| *last >= self.cleaned)
    }

    /// Goes on at `at`: between there and here are only checkpoints, which change nothing.
    ///
    /// # Panics
    /// If that is before here.
    pub(crate) fn skip_to(&mut self, at: Rsn) {
        assert!(self.at <= at, "a fold goes forward");
        self.at = at;
    }

    /// The same state, if the page file had every record before it.
    pub(crate) fn clean(self) -> State {
        State { cleaned: self.at, ..self }
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// See [`FoldFault`]; nothing has changed then.
    #[inline]
    pub fn take(&mut self, record: &Record<'_>) -> Result<(), FoldFault> {
        if record.rsn != self.at {
            return Err(FoldFault::Gap { at: self.at, found: record.rsn });
        }
        if let Some(link) = record.what.link() {
            self.check(link)?;
        }
        self.change(record)?;
        if let Some(link) = record.what.link() {
            self.note(link.page, record.rsn);
        }
        self.at = record.end;
        Ok(())
    }

    /// Whether there can be a record of this page.
    fn check(&self, link: PageLink) -> Result<(), FoldFault> {
        let ahead = if link.before == Rsn::NONE { PAGES_AHEAD_MAX } else { 0 };
        let below = PAGES_MAX.min(self.next_page.get() + ahead);
        let page = link.page.get();
        if page < below { Ok(()) } else { Err(FoldFault::Page(link.page)) }
    }

    fn change(&mut self, record: &Record<'_>) -> Result<(), FoldFault> {
        match record.what {
            What::Update { slot, body, .. } => self.undo.push(slot, body),
            What::Compensate { slot, .. } if self.undo.is_empty(slot) => {
                return Err(FoldFault::Undo(slot));
            }
            What::Compensate { slot, .. } => self.undo.pop(slot),
            What::Aborted(slot) if !self.undo.is_empty(slot) => return Err(FoldFault::Undo(slot)),
            What::Commit(slot) | What::Aborted(slot) => self.undo.end(slot),
            What::Retold { slot, count, bodies } => {
                self.retell(slot, count, bodies).ok_or(FoldFault::Undo(slot))?;
            }
            What::Image { at, .. } if at.before == Rsn::NONE => self.use_page(at.page),
            What::Free { at } => self.free_page(at.page),
            What::Copy { page, .. } => return Err(FoldFault::Page(page)),
            What::Cleaned(upto) if upto > record.rsn => return Err(FoldFault::Cleaned(upto)),
            What::Cleaned(upto) => self.cleaned = self.cleaned.max(upto),
            What::System { .. } | What::Image { .. } | What::Checkpoint(_) | What::Opened(_) => {}
        }
        Ok(())
    }

    /// Puts bodies in the place of the newest `count`. None if those are not there, or these none.
    fn retell(&mut self, slot: Slot, count: u64, bodies: &[u8]) -> Option<()> {
        let kept = self.undo.len(slot).checked_sub(usize::try_from(count).ok()?)?;
        let bodies = crate::bodies::all(bodies).filter(|bodies| !bodies.is_empty())?;
        self.undo.replace(slot, kept, &bodies);
        Some(())
    }

    fn use_page(&mut self, page: PageNumber) {
        self.free.remove(&page);
        self.next_page = self.next_page.max(PageNumber(page.get() + 1));
    }

    fn free_page(&mut self, page: PageNumber) {
        self.free.insert(page);
    }

    /// Notes a page's record, which is its last so far.
    #[inline]
    pub(crate) fn note(&mut self, page: PageNumber, rsn: Rsn) {
        let at = page.get() as usize;
        if at >= self.lasts.len() {
            self.lasts.resize(at + 1, Rsn::NONE);
        }
        if self.lasts[at] < self.marked {
            self.touched.push(page);
        }
        self.lasts[at] = rsn;
    }

    /// A page's last record, if that is not before `cleaned`; else any before that, or none.
    #[inline]
    pub(crate) fn last(&self, page: PageNumber) -> Rsn {
        self.lasts.get(page.get() as usize).copied().unwrap_or(Rsn::NONE)
    }

    /// Whether pages and transactions are as they were at the last mark.
    pub(crate) fn is_as_marked(&self) -> bool {
        self.touched.is_empty() && self.undo.changed().next().is_none()
    }

    /// From here on changes are kept apart from those before: a difference begins here.
    pub fn mark(&mut self) {
        self.marked = self.at;
        self.touched.clear();
        self.undo.mark();
    }
}

impl Default for State {
    fn default() -> State {
        State::new()
    }
}

#[cfg(test)]
pub(crate) mod tests;
