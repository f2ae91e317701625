//! All records of a store as one: those in the archive, and those that are not there yet.
//!
//! Promise: no record is in between the two.
//! Never: says what a record does.

use crate::archive::Archive;
use crate::fresh::Fresh;
use crate::rsn::Rsn;

/// All records, as of some moment.
#[derive(Clone, Debug)]
pub struct View {
    archive: Archive,
    fresh: Fresh,
}

impl View {
    /// These records.
    ///
    /// # Panics
    /// If there is a gap between the two.
    #[must_use]
    pub fn new(archive: Archive, fresh: Fresh) -> View {
        let archived = archive.end().unwrap_or(Rsn::FIRST);
        assert!(fresh.begin() <= archived, "no record is in between");
        View { archive, fresh }
    }

    /// Those that are archived.
    #[must_use]
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The others, and maybe some of the archived ones.
    #[must_use]
    pub fn fresh(&self) -> &Fresh {
        &self.fresh
    }
}
