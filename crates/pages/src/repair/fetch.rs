//! A page as of now, for whoever has it in no frame.
//!
//! Promise: what is handed over has every record that was noted of the page, whatever the device
//! gave; a page that the device has not, or not rightly, is rebuilt from its records and counted.
//! Never: writes, flushes, or waits for a latch; hands over a page that is older than it should be.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::archive::page_records::PageRecords;
use crate::backup::restoring::Restoring;
use crate::canary::{Invariant, Point, at, holds};
use crate::error::{FetchError, ReadPageError, ReplayError};
use crate::page::apply::Contents;
use crate::page::images::{Images, Known, OtherVersion};
use crate::page::page_file::PageFile;
use crate::page::{Page, PageFault};
use crate::repair::repairs::{FaultKind, Repairs};
use crate::repair::replay::{Upto, replay, replay_fresh};
use crate::repair::view::Views;
use crate::restart::follower::Follower;
use crate::restart::stale::{Expected, Imaged, PAGES_MAX, Stale};
use crate::stream::Stream;
use crate::stream::rsn::{PageNumber, Rsn};

/// Where the pages of one store come from. All calls may come from any thread.
pub struct Fetch {
    pub(crate) stream: Arc<Stream>,
    pub(crate) follower: Arc<Follower>,
    pub(crate) views: Arc<Views>,
    pub(crate) stale: Arc<Stale>,
    pub(crate) images: Arc<Images>,
    pub(crate) pages: Arc<PageFile>,
    pub(crate) repairs: Arc<Repairs>,
    pub(crate) restoring: Arc<Restoring>,
    pub(crate) contents: Arc<dyn Contents>,
    /// Memory that is used again.
    pub(crate) scratch: Mutex<Vec<PageRecords>>,
    /// How many pages were had without a look at the device.
    pub(crate) elided: AtomicU64,
}

/// How a page was had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Whether it got records that its image had not.
    pub replayed: bool,
    /// What was wrong with its image, if anything was.
    pub repaired: Option<FaultKind>,
}

impl Fetch {
    /// Makes `into`, which is nothing, this page with all its records. Those that were noted must
    /// be stable.
    ///
    /// # Errors
    /// See [`FetchError`]; `into` may be anything then.
    pub fn load(&self, number: PageNumber, into: &mut Page) -> Result<Fetched, FetchError> {
        if number == PageNumber::NONE || number.get() >= PAGES_MAX {
            return Err(FetchError::NoSuchPage(number));
        }
        if self.load_fresh(number, into)? {
            self.elided.fetch_add(1, Ordering::Relaxed);
            return Ok(Fetched { replayed: true, repaired: None });
        }
        let (known, read) = self.look(number, into)?;
        let fault = self.fault_of(number, read, into.rsn(), known.imaged)?;
        let mut gathered = self.take_scratch();
        let fetched = self.bring(number, known.expected, fault, into, &mut gathered);
        self.put_scratch(gathered);
        let fetched = fetched?;
        self.note(number, known.expected, fetched.repaired, into.rsn());
        Ok(fetched)
    }

    /// The page of what is in memory alone, if its newest image is there: whatever the device has
    /// of it is older, and is not read. False if it is not.
    fn load_fresh(&self, number: PageNumber, into: &mut Page) -> Result<bool, FetchError> {
        let expected = self.stale.expected(number);
        let Expected::At(wanted) = expected else { return Ok(false) };
        if wanted < self.views.archived() {
            return Ok(false);
        }
        self.upto(number, expected)?;
        let (view, mut gathered) = (self.views.view(), self.take_scratch());
        let is_whole = replay_fresh(into, number, wanted, &view, &*self.contents, &mut gathered);
        self.put_scratch(gathered);
        Ok(is_whole)
    }

    /// What is known of a page, and what was read of it.
    pub(crate) fn look(
        &self,
        number: PageNumber,
        into: &mut Page,
    ) -> Result<(Known, Result<(), ReadPageError>), FetchError> {
        if !holds(Invariant::LookupBeforeRead) {
            let read = self.pages.read(number, into);
            at(Point::Fetching);
            return Ok((self.known(number)?, read));
        }
        // In this order: what is read is newer than what was known, which is no fault.
        let known = self.known(number)?;
        at(Point::Fetching);
        Ok((known, self.pages.read(number, into)))
    }

    /// What was wrong with what was read, given what the image should have got to.
    pub(crate) fn fault_of(
        &self,
        number: PageNumber,
        read: Result<(), ReadPageError>,
        rsn: Rsn,
        imaged: Imaged,
    ) -> Result<Option<FaultKind>, FetchError> {
        let (image, was_written) = match imaged {
            Imaged::At(rsn) => (rsn, rsn != Rsn::NONE && !self.restoring.awaits(number)),
            _ => (Rsn::NONE, false),
        };
        Ok(match read {
            Ok(()) if rsn < image => Some(FaultKind::LostWrite),
            Ok(()) if rsn >= self.views.written_below() => Some(FaultKind::Astray),
            Ok(()) => None,
            Err(ReadPageError::Fault(fault)) => match fault {
                PageFault::Zeroed => was_written.then_some(FaultKind::Zeroed),
                PageFault::Number(_) => Some(FaultKind::Misplaced),
                PageFault::Version(found) => return Err(FetchError::OtherVersion { found }),
                PageFault::Check | PageFault::Kind(_) => Some(FaultKind::Damaged),
            },
            Err(ReadPageError::Io(_)) => Some(FaultKind::Unreadable),
        })
    }

    /// Brings a page from its image, or from nothing if that does not serve, to what is expected of
    /// it. Nothing is noted.
    pub(crate) fn bring(
        &self,
        number: PageNumber,
        expected: Expected,
        fault: Option<FaultKind>,
        page: &mut Page,
        gathered: &mut PageRecords,
    ) -> Result<Fetched, FetchError> {
        if fault.is_some_and(|fault| fault != FaultKind::LostWrite) {
            page.clear();
        }
        let upto = self.upto(number, expected)?;
        if fault.is_none() && matches!(upto, Upto::Record(wanted) if page.rsn() >= wanted) {
            return Ok(Fetched { replayed: false, repaired: None });
        }
        let (image, mut repaired) = (page.rsn(), fault);
        if let Err(error) = self.replay(page, number, upto, gathered) {
            if image == Rsn::NONE || matches!(error, ReplayError::Archive(_)) {
                return Err(FetchError::of(number, error));
            }
            page.clear();
            repaired = repaired.or(Some(FaultKind::Astray));
            let again = self.replay(page, number, upto, gathered);
            again.map_err(|error| FetchError::of(number, error))?;
        }
        if page.rsn() == Rsn::NONE {
            return Err(FetchError::NoSuchPage(number));
        }
        Ok(Fetched { replayed: page.rsn() > image, repaired })
    }

    /// Remembers what was learned of a page.
    fn note(&self, number: PageNumber, expected: Expected, fault: Option<FaultKind>, rsn: Rsn) {
        if expected == Expected::Unknown {
            self.stale.raise(number, rsn);
        }
        if let Some(kind) = fault {
            self.repairs.add(number, kind);
        }
    }

    /// How far a page is to be brought. Every record up to there is in a view from now on.
    fn upto(&self, number: PageNumber, expected: Expected) -> Result<Upto, FetchError> {
        match expected {
            Expected::At(Rsn::NONE) => Err(FetchError::NoSuchPage(number)),
            Expected::At(wanted) => {
                self.follower.catch_up(wanted.advance(1))?;
                Ok(Upto::Record(wanted))
            }
            Expected::Unknown | Expected::Unread => {
                self.follower.catch_up(self.stream.stable())?;
                Ok(Upto::Newest)
            }
        }
    }

    pub(crate) fn replay(
        &self,
        page: &mut Page,
        number: PageNumber,
        upto: Upto,
        gathered: &mut PageRecords,
    ) -> Result<Rsn, ReplayError> {
        replay(page, number, upto, &self.views.view(), &*self.contents, gathered)
    }

    fn known(&self, number: PageNumber) -> Result<Known, FetchError> {
        let known = self.images.known(number);
        let mut known = known.map_err(|OtherVersion(found)| FetchError::OtherVersion { found })?;
        if self.restoring.awaits(number) {
            // Its image is gone with the file that it was in.
            known.imaged = Imaged::Unknown;
        }
        Ok(known)
    }

    pub(crate) fn take_scratch(&self) -> PageRecords {
        self.scratch.lock().expect("nothing panics with memory").pop().unwrap_or_default()
    }

    pub(crate) fn put_scratch(&self, gathered: PageRecords) {
        self.scratch.lock().expect("nothing panics with memory").push(gathered);
    }
}

impl std::fmt::Debug for Fetch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Fetch").field("pages", &self.pages).finish_non_exhaustive()
    }
}
