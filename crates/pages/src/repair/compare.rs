//! Compares pages with what their records make of them, while they are in use.
//!
//! Promise: a page that is other than its records say is told, with the first byte that differs.
//! Never: repairs anything, or counts what it finds.

use crate::archive::page_records::PageRecords;
use crate::error::{CompareError, FetchError};
use crate::page::{PAGE_HEAD_BYTES, Page};
use crate::repair::fetch::Fetch;
use crate::repair::repairs::FaultKind;
use crate::repair::replay::{Upto, newest_archived};
use crate::restart::stale::Imaged;
use crate::stream::rsn::PageNumber;

/// What is known of a page on its device.
#[derive(Debug)]
pub enum Checked {
    /// It is what its records say, or there is no such page.
    Sound,
    /// It is not what it should be, and is made again from its records whenever it is read.
    OnDevice(FaultKind),
    /// It is taken for the page and is another, or its records do not all tell.
    Other(CompareError),
}

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
    pub(crate) fn check(&self, number: PageNumber) -> Result<Checked, FetchError> {
        let (mut page, mut gathered) = (Page::zeroed(), self.take_scratch());
        let checked = self.check_with(number, &mut page, &mut gathered);
        self.put_scratch(gathered);
        match checked {
            // A number that was given out, and whose first record a crash took.
            Err(FetchError::NoSuchPage(_)) => Ok(Checked::Sound),
            checked => checked,
        }
    }

    fn check_with(
        &self,
        number: PageNumber,
        page: &mut Page,
        gathered: &mut PageRecords,
    ) -> Result<Checked, FetchError> {
        let (known, read) = self.look(number, page)?;
        let fault = self.fault_of(number, read, page.rsn(), known.imaged)?;
        let brought = self.bring(number, known.expected, fault, page, gathered)?;
        if let Some(fault) = brought.repaired {
            return Ok(Checked::OnDevice(fault));
        }
        let compared = match newest_archived(number, &self.views.view(), gathered) {
            Err(error) => Err(CompareError::Fetch(FetchError::of(number, error))),
            Ok(newest) if page.rsn() < newest => Err(CompareError::Older { newest }),
            Ok(_) => self.compare(page),
        };
        Ok(compared.map_or_else(Checked::Other, |()| Checked::Sound))
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
