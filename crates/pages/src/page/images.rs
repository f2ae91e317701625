//! Which record the image of each page has got to, asked of the device when it is first needed.
//!
//! Promise: what is told was written with the image, or it is said that nobody knows; a record
//! that is nowhere is none of them, whatever a file says that is newer than the records.
//! Never: looks at an image; writes what is not in the page file.

mod writing;

use std::sync::{Arc, Mutex};

use crate::error::VersionsError;
use crate::page::versions::{UNTOLD, VERSIONS_PAGES, Versions};
use crate::restart::stale::{Expected, Imaged, PAGES_MAX, Stale};
use crate::stream::rsn::{PageNumber, Rsn};

const _: () = assert!(UNTOLD.get() == u64::MAX, "no record is told where none is known");

/// The images of one page file. All calls may come from any thread.
#[derive(Debug)]
pub struct Images {
    stale: Arc<Stale>,
    versions: Arc<Versions>,
    /// Where all records ended when the file was opened, which tells only of those.
    end: Rsn,
    /// Held while a block is read or written.
    block: Mutex<[Rsn; VERSIONS_PAGES]>,
}

/// What is known of a page before it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) imaged: Imaged,
    /// Never unread.
    pub(crate) expected: Expected,
}

/// What the device tells is of this version, which is not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherVersion(pub(crate) u16);

impl Images {
    /// Asks this file, and keeps the answers in this table. All records end at `end`.
    #[must_use]
    pub fn new(stale: Arc<Stale>, versions: Arc<Versions>, end: Rsn) -> Images {
        Images { stale, versions, end, block: Mutex::new([Rsn::NONE; VERSIONS_PAGES]) }
    }

    /// What is known of a page.
    ///
    /// # Errors
    /// See [`OtherVersion`].
    pub(crate) fn known(&self, page: PageNumber) -> Result<Known, OtherVersion> {
        if self.stale.imaged(page) == Imaged::Unread && !self.ask(page)? {
            return Ok(self.unread(page));
        }
        let expected = self.stale.expected(page);
        Ok(Known { imaged: self.stale.imaged(page), expected })
    }

    /// A page of which the device does not tell. That is not kept: the number may be far from any
    /// page that there is.
    fn unread(&self, page: PageNumber) -> Known {
        let expected = match self.stale.expected(page) {
            Expected::Unread => Expected::Unknown,
            noted => noted,
        };
        Known { imaged: Imaged::Unknown, expected }
    }

    /// Reads what the device says of a page and its neighbours. False if it says nothing.
    fn ask(&self, page: PageNumber) -> Result<bool, OtherVersion> {
        let mut rsns = self.block.lock().expect("nothing panics with a block");
        let (block, _) = Versions::place(page);
        match self.versions.read(block, &mut rsns) {
            Ok(()) => {}
            Err(VersionsError::Unknown | VersionsError::Io(_)) => return Ok(false),
            Err(VersionsError::OtherVersion { found, .. }) => return Err(OtherVersion(found)),
        }
        let first = block * VERSIONS_PAGES as u64;
        let pages = (first..PAGES_MAX).map(PageNumber).zip(rsns.iter());
        for (page, rsn) in pages.filter(|(page, _)| *page != PageNumber::NONE) {
            self.stale.found(page, Some(*rsn).filter(|rsn| *rsn < self.end));
        }
        Ok(true)
    }
}
