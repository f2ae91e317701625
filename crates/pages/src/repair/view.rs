//! All records of a store as one: those in the archive, and those that are not there yet.
//!
//! Promise: no record is in between the two; who looks sees a run as soon as it is shown, and keeps
//! what it saw.
//! Never: says what a record does.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::archive::Archive;
use crate::archive::fresh::Fresh;
use crate::archive::run_reader::Run;
use crate::restart::follower::Follower;
use crate::stream::rsn::Rsn;

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

/// The records of an open store. All calls may come from any thread.
#[derive(Debug)]
pub struct Views {
    follower: Arc<Follower>,
    archive: Mutex<Archive>,
    /// Up to where pages were clean when the store was opened, which the archive had reached once.
    cleaned: Rsn,
}

impl Views {
    /// What follows this archive is what `follower` has; pages are clean up to `cleaned`, which is
    /// behind the archive's end if its last runs were lost.
    #[must_use]
    pub fn new(follower: Arc<Follower>, archive: Archive, cleaned: Rsn) -> Views {
        Views { follower, archive: Mutex::new(archive), cleaned }
    }

    /// All records that the follower has taken.
    #[must_use]
    pub fn view(&self) -> View {
        // In this order: a run is shown before its records are fresh no more.
        let fresh = self.follower.fresh();
        View::new(self.archive(), fresh)
    }

    /// Those that are archived.
    #[must_use]
    pub fn archive(&self) -> Archive {
        self.lock().clone()
    }

    /// Where the first record stands that is not archived.
    #[must_use]
    pub fn archived(&self) -> Rsn {
        self.lock().end().unwrap_or(Rsn::FIRST)
    }

    /// Whether the page file has records that the archive has lost, and has not got again.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.archived() < self.cleaned
    }

    /// No page in the page file has a record here or behind it: only what is archived is written.
    #[must_use]
    pub fn written_below(&self) -> Rsn {
        self.archived().max(self.cleaned)
    }

    /// From now on everybody sees this run: behind the others, or in the place of those that it was
    /// merged from. Who looked before keeps those.
    ///
    /// # Panics
    /// As [`Archive::with`].
    pub fn show(&self, run: Arc<Run>) {
        let mut archive = self.lock();
        *archive = archive.with(run);
        let archived = archive.end().unwrap_or(Rsn::FIRST);
        drop(archive);
        self.follower.forget_below(archived);
    }

    fn lock(&self) -> MutexGuard<'_, Archive> {
        self.archive.lock().expect("nothing panics with the archive")
    }
}
