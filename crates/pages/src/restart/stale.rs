//! Which record each page should have got to, whoever has it.
//!
//! Promise: what a page is expected to have got to never falls, and is at least what its image on
//! the device has and what anybody has noted since; noting, cleaning and asking may happen at once.
//! Never: knows where the pages are, or reads an image.
//!
//! Two numbers a page. `noted` is raised by whoever knows of a newer record, and goes when the
//! image has that. `image` is what the page file should have, or that nobody has asked yet.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stream::rsn::{PageNumber, Rsn};

/// Entries of the first part; each further part has as many as all before it.
const FIRST_PART: u64 = 4096;
/// Enough for every page that a tree can have.
const PARTS: usize = 21;
/// Pages that there can be: a tree's root is a number of 32 bits.
pub const PAGES_MAX: u64 = 1 << 32;

const _: () = assert!(FIRST_PART << (PARTS - 1) == PAGES_MAX);

/// `image`: nobody has asked the device.
const UNREAD: u64 = 0;
/// `image`: the device does not say.
const UNKNOWN: u64 = 1;
/// `image`: the device has none.
const ABSENT: u64 = 2;

const _: () = assert!(ABSENT < Rsn::FIRST.get());

/// The pages of one store. All calls may come from any thread.
#[derive(Default)]
pub struct Stale {
    parts: [OnceLock<Box<[Entry]>>; PARTS],
}

#[derive(Default)]
struct Entry {
    noted: AtomicU64,
    image: AtomicU64,
}

/// What is known of a page's image on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imaged {
    /// Nobody has asked: see [`Stale::found`].
    Unread,
    /// Whoever was asked does not know.
    Unknown,
    /// It has got to this record; [`Rsn::NONE`] if there is no image.
    At(Rsn),
}

/// What a page is expected to have got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing was noted, and nobody has asked what its image has: see [`Stale::found`].
    Unread,
    /// Nothing was noted, and whoever was asked does not know. All its records have to be looked
    /// for.
    Unknown,
    /// This record; [`Rsn::NONE`] if there is no such page.
    At(Rsn),
}

impl Stale {
    /// A table in which nothing is noted, and no image known.
    #[must_use]
    pub fn new() -> Stale {
        Stale::default()
    }

    /// Notes that the page has this record.
    ///
    /// # Panics
    /// This, [`Stale::found`] and [`Stale::prune`], if no page can have this number.
    pub fn raise(&self, page: PageNumber, rsn: Rsn) {
        self.entry(page).noted.fetch_max(rsn.get(), Ordering::Relaxed);
    }

    /// Says what the device tells of a page's image, unless more is known already. None if it
    /// cannot tell.
    pub fn found(&self, page: PageNumber, image: Option<Rsn>) {
        let image = match image {
            None => UNKNOWN,
            Some(Rsn::NONE) => ABSENT,
            Some(rsn) => rsn.get(),
        };
        let entry = self.entry(page);
        // EDGE image-before-noted: as when cleaning. Who loses against that has older news.
        let _ = entry.image.compare_exchange(UNREAD, image, Ordering::Release, Ordering::Relaxed);
    }

    /// Says that the page's image on the device has got to `written`, and that every image has all
    /// records before `cleaned`. A newer record that was noted stays noted.
    pub fn prune(&self, page: PageNumber, written: Rsn, cleaned: Rsn) {
        let entry = self.entry(page);
        // EDGE image-before-noted: whoever misses the note finds the image.
        entry.image.fetch_max(written.get(), Ordering::Release);
        let noted = entry.noted.load(Ordering::Relaxed);
        if noted < cleaned.get() {
            let (set, failed) = (Ordering::Release, Ordering::Relaxed);
            // A failure is a newer note.
            let _ = entry.noted.compare_exchange(noted, 0, set, failed);
        }
    }

    /// What the page is expected to have got to. Ask before the page is read, not after: a cleaner
    /// may write it between the two.
    #[must_use]
    pub fn expected(&self, page: PageNumber) -> Expected {
        let Some(entry) = self.known(page) else { return Expected::Unread };
        // EDGE image-before-noted: in this order, so that one of the two is found.
        let noted = entry.noted.load(Ordering::Acquire);
        match (noted, entry.image.load(Ordering::Acquire)) {
            (0, UNREAD) => Expected::Unread,
            (0, UNKNOWN) => Expected::Unknown,
            (0, ABSENT) => Expected::At(Rsn::NONE),
            (noted, image) => Expected::At(Rsn(noted.max(image))),
        }
    }

    /// Whether records of the page were noted that its image may lack.
    #[must_use]
    pub fn is_noted(&self, page: PageNumber) -> bool {
        self.known(page).is_some_and(|entry| entry.noted.load(Ordering::Relaxed) != 0)
    }

    /// Behind every page of which anything was said.
    pub(crate) fn end(&self) -> PageNumber {
        let parts = self.parts.iter().rposition(|part| part.get().is_some());
        PageNumber(parts.map_or(0, |last| (0..=last).map(entries).sum()))
    }

    /// The newest record of the page that was noted and that its image may lack.
    pub(crate) fn noted(&self, page: PageNumber) -> Rsn {
        self.known(page).map_or(Rsn::NONE, |entry| Rsn(entry.noted.load(Ordering::Relaxed)))
    }

    /// Whether records of the page were noted that its image lacks, as far as that is known.
    pub(crate) fn is_dirty(&self, page: PageNumber) -> bool {
        self.known(page).is_some_and(|entry| {
            let noted = entry.noted.load(Ordering::Relaxed);
            noted > entry.image.load(Ordering::Relaxed)
        })
    }

    /// What is known of the page's image.
    #[must_use]
    pub fn imaged(&self, page: PageNumber) -> Imaged {
        let Some(entry) = self.known(page) else { return Imaged::Unread };
        // EDGE image-before-noted: alone, as no note is asked for.
        match entry.image.load(Ordering::Acquire) {
            UNREAD => Imaged::Unread,
            UNKNOWN => Imaged::Unknown,
            ABSENT => Imaged::At(Rsn::NONE),
            rsn => Imaged::At(Rsn(rsn)),
        }
    }

    /// The entry, if anything was said of the page or its neighbours. Whoever only asks may have
    /// the number from a damaged page.
    fn known(&self, page: PageNumber) -> Option<&Entry> {
        let (part, at) = place(page);
        self.parts.get(part)?.get().map(|entries| &entries[at])
    }

    fn entry(&self, page: PageNumber) -> &Entry {
        assert!(page != PageNumber::NONE && page.get() < PAGES_MAX, "page {page} cannot be");
        let (part, at) = place(page);
        let made = || (0..entries(part)).map(|_| Entry::default()).collect();
        &self.parts[part].get_or_init(made)[at]
    }
}

/// In which part a page's entry is, and where there.
fn place(page: PageNumber) -> (usize, usize) {
    let part = (page.get() / FIRST_PART).checked_ilog2().map_or(0, |log| log as usize + 1);
    let before = if part == 0 { 0 } else { entries(part) };
    (part, (page.get() - before) as usize)
}

fn entries(part: usize) -> u64 {
    FIRST_PART << part.saturating_sub(1)
}

impl std::fmt::Debug for Stale {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Stale").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
