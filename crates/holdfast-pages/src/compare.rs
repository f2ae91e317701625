//! Compares pages with what their records make of them, while they are in use.
//!
//! Promise: a page that is other than its records say is told, with the first byte that differs.
//! Never: repairs anything, or counts what it finds.

use crate::error::{CompareError, FetchError};
use crate::fetch::Fetch;
use crate::page::{PAGE_HEAD_BYTES, Page};
use crate::repairs::FaultKind;
use crate::replay::Upto;
use crate::rsn::PageNumber;
use crate::stale::Imaged;

impl Fetch {
    /// Compares a page as somebody has it in memory with what its records make of nothing. Those
    /// that it has must be stable.
    pub(crate) fn compare(&self, page: &Page) -> Result<(), CompareError> {
        self.follower.catch_up(page.rsn().advance(1)).map_err(FetchError::Follow)?;
        let (mut wanted, mut gathered) = (Page::zeroed(), self.take_scratch());
        let upto = Upto::Record(page.rsn());
        let replayed = self.replay(&mut wanted, page.number(), upto, &mut gathered);
        self.put_scratch(gathered);
        replayed.map_err(|error| FetchError::of(page.number(), error))?;
        match first_difference(page, &wanted) {
            None => Ok(()),
            Some(at) => Err(CompareError::Differs { at }),
        }
    }

    /// What is wrong with a page on its device, if anything is.
    pub(crate) fn check_image(&self, number: PageNumber) -> Result<Option<FaultKind>, FetchError> {
        let mut page = Page::zeroed();
        let (known, read) = self.look(number, &mut page)?;
        self.fault_of(number, read, page.rsn(), known.imaged)
    }

    /// Makes `into`, which is nothing, the page as it is on its device. False if that does not
    /// serve, or may be older than the page file is said to be.
    pub(crate) fn image(&self, number: PageNumber, into: &mut Page) -> Result<bool, FetchError> {
        let (known, read) = self.look(number, into)?;
        let is_known = matches!(known.imaged, Imaged::At(_)) && read.is_ok();
        Ok(is_known && self.fault_of(number, read, into.rsn(), known.imaged)?.is_none())
    }
}

/// The first byte of a page in memory that is not as in another one; the check means nothing there.
fn first_difference(page: &Page, other: &Page) -> Option<usize> {
    if page.same_bytes(other) {
        return None;
    }
    let pairs = page.contents().iter().zip(other.contents());
    let at = pairs.take_while(|(one, other)| one == other).count();
    Some(if at < page.contents().len() { PAGE_HEAD_BYTES + at } else { 0 })
}
