//! Pages in memory.
//!
//! Promise: a page is in one frame or none; whoever has its latch has the page that he asked for,
//! with all its records; as long as he has it nobody changes it but he.
//! Never: writes a page to a device, or waits for the log; knows what a page holds.
//!
//! Latches are taken from the root down and from left to right. Whoever waits for anything else (a
//! lock, room in the log, its device) holds none; reading a page from below is no such wait.

pub(crate) mod allocator;
pub(crate) mod counts;
pub(crate) mod evict;
pub(crate) mod frames;
pub(crate) mod latches;
pub(crate) mod page_table;
pub(crate) mod tally;
pub(crate) mod unfreed;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use holdfast_pages::{Page, PageNumber, Rsn};

use crate::face::config::Eviction;
use crate::pool::counts::PoolStatistics;
use crate::pool::frames::{Frame, Frames, Held};
use crate::pool::latches::Counted;
use crate::pool::page_table::{PAGES_MAX, PageTable};
use crate::pool::tally::Tally;

/// Loads of different pages that may happen at once, about.
const STRIPES: usize = 64;

/// What the pool stands on.
pub(crate) trait Below: Send + Sync {
    /// Why a page cannot be had.
    type Error;

    /// Makes `into`, which is nothing, this page, with all its records.
    ///
    /// # Errors
    /// It cannot be had; `into` may be anything then.
    fn load(&self, number: PageNumber, into: &mut Page) -> Result<(), Self::Error>;

    /// Every image on the device has all records before this one.
    fn cleaned(&self) -> Rsn;

    /// Records before this one are where [`Below::load`] finds them.
    fn stable(&self) -> Rsn;

    /// From now on the page is to be loaded with its records up to this one.
    fn note(&self, number: PageNumber, rsn: Rsn);

    /// From now on every page is to be loaded with all its records that are stable.
    ///
    /// # Errors
    /// They cannot be had.
    fn settle(&self) -> Result<(), Self::Error>;
}

/// Why a page is not in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum FixError<E> {
    /// It cannot be had from below.
    Below(E),
    /// No store has a page of that number; whoever named it is damaged.
    NoSuchPage(PageNumber),
    /// No frame can be given away: each is latched, or holds records that are not stable. Let all
    /// latches go, flush the stream, and begin again.
    NoFrame,
}

/// So many frames, and what pages are in them.
pub(crate) struct Pool<B> {
    pub(crate) below: B,
    pub(crate) eviction: Eviction,
    pub(crate) frames: Frames,
    pub(crate) table: PageTable,
    /// Pages that were not what their records say.
    pub(crate) thrown_away: AtomicU64,
    /// Looks for pages, and those that were brought because of that, or have left for others.
    looks: Tally,
    brought: AtomicU64,
    pub(crate) evicted: AtomicU64,
    /// Held while a page is brought, so that one brings it.
    bringing: [Mutex<()>; STRIPES],
    /// The frame that is looked at next when one is to be given away.
    pub(crate) hand: AtomicUsize,
}

/// A page that nobody changes as long as this lives.
pub(crate) struct ReadLatch<'a>(RwLockReadGuard<'a, Held>, Counted);

/// A page that nobody else sees as long as this lives.
pub(crate) struct WriteLatch<'a>(RwLockWriteGuard<'a, Held>, Counted);

impl<B: Below> Pool<B> {
    /// A pool of so many frames, with nothing in them.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub(crate) fn new(frames: usize, below: B, eviction: Eviction) -> Pool<B> {
        assert!(frames > 0, "a pool has frames");
        Pool {
            below,
            eviction,
            frames: Frames::new(frames),
            table: PageTable::new(),
            thrown_away: AtomicU64::new(0),
            looks: Tally::default(),
            brought: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            bringing: [const { Mutex::new(()) }; STRIPES],
            hand: AtomicUsize::new(0),
        }
    }

    /// The page, to be read.
    ///
    /// # Errors
    /// See [`FixError`].
    pub(crate) fn read(&self, number: PageNumber) -> Result<ReadLatch<'_>, FixError<B::Error>> {
        self.looks.add();
        loop {
            let frame = self.frame(number)?;
            let held = frame.held.read().expect("nothing panics with a latch");
            if held.number == number {
                frame.touch();
                return Ok(ReadLatch(held, Counted::new()));
            }
        }
    }

    /// The page, to be changed.
    ///
    /// # Errors
    /// See [`FixError`].
    pub(crate) fn write(&self, number: PageNumber) -> Result<WriteLatch<'_>, FixError<B::Error>> {
        self.looks.add();
        loop {
            let frame = self.frame(number)?;
            let held = frame.held.write().expect("nothing panics with a latch");
            if held.number == number {
                frame.touch();
                return Ok(WriteLatch(held, Counted::new()));
            }
        }
    }

    /// The page, to be changed, if nobody has its latch and it is in a frame. For those who take
    /// latches in an order of their own.
    pub(crate) fn try_write(&self, number: PageNumber) -> Option<WriteLatch<'_>> {
        let frame = &self.frames[self.table.get(number)?];
        let held = frame.try_write()?;
        (held.number == number).then(|| WriteLatch(held, Counted::new()))
    }

    /// Shows every page that is in a frame, each with its latch, and returns how many latches that
    /// took.
    pub(crate) fn survey(&self, mut each: impl FnMut(&Page)) -> u64 {
        let used = self.frames.used();
        used.map(|at| {
            let latch = self.frames[at].held.read().expect("nothing panics with a latch");
            let latch = ReadLatch(latch, Counted::new());
            if latch.0.number != PageNumber::NONE {
                each(&latch);
            }
        })
        .count() as u64
    }

    /// The page as it is in its frame; none if it is in none.
    pub(crate) fn copy(&self, number: PageNumber) -> Option<Page> {
        let held = self.frames[self.table.get(number)?].held.read();
        let held = held.expect("nothing panics with a latch");
        (held.number == number).then(|| held.page().clone())
    }

    /// A page that begins now, and that nobody else knows. It is nothing, or what it was before it
    /// was freed, until an image is applied to it; if none is, [`Pool::forget`] it.
    ///
    /// # Errors
    /// See [`FixError`].
    pub(crate) fn make(&self, number: PageNumber) -> Result<WriteLatch<'_>, FixError<B::Error>> {
        check(number)?;
        if self.table.get(number).is_some() {
            return self.write(number);
        }
        let _alone = self.bring_alone(number);
        let (at, mut held) = self.claim().ok_or(FixError::NoFrame)?;
        self.give(at, &mut held, number);
        Ok(WriteLatch(held, Counted::new()))
    }

    /// The page, to be changed, if it is in a frame.
    pub(crate) fn in_frame(&self, number: PageNumber) -> Option<WriteLatch<'_>> {
        let held = self.frames[self.table.get(number)?].held.write();
        let held = held.expect("nothing panics with a latch");
        (held.number == number).then(|| WriteLatch(held, Counted::new()))
    }

    /// [`Pool::forget`], of a page that is not what its records say.
    pub(crate) fn throw_away(&self, latch: WriteLatch<'_>) {
        self.thrown_away.fetch_add(1, Ordering::Relaxed);
        self.forget(latch);
    }

    /// Lets go of a page without a trace, so that it is loaded anew by whoever wants it next. For
    /// pages that have turned out to be damaged.
    pub(crate) fn forget(&self, latch: WriteLatch<'_>) {
        let mut held = latch.0;
        let at = self.table.get(held.number).expect("a latched page is in its frame");
        self.table.clear(held.number);
        self.empty(at, &mut held);
    }

    /// The frame that the page was in a moment ago.
    fn frame(&self, number: PageNumber) -> Result<&Frame, FixError<B::Error>> {
        loop {
            if let Some(at) = self.table.get(number) {
                return Ok(&self.frames[at]);
            }
            self.bring(number)?;
        }
    }

    /// Puts the page into a frame, if it is in none.
    fn bring(&self, number: PageNumber) -> Result<(), FixError<B::Error>> {
        check(number)?;
        let _alone = self.bring_alone(number);
        if self.table.get(number).is_some() {
            return Ok(());
        }
        let (at, mut held) = self.claim().ok_or(FixError::NoFrame)?;
        if let Err(error) = self.below.load(number, held.page_mut()) {
            self.empty(at, &mut held);
            return Err(FixError::Below(error));
        }
        self.give(at, &mut held, number);
        self.brought.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// What became of looks for pages.
    pub(crate) fn statistics(&self) -> PoolStatistics {
        let misses = self.brought.load(Ordering::Relaxed);
        let looks = self.looks.sum();
        PoolStatistics {
            frames: self.frames.len() as u64,
            hits: looks.saturating_sub(misses),
            misses,
            evictions: self.evicted.load(Ordering::Relaxed),
        }
    }

    fn give(&self, at: usize, held: &mut Held, number: PageNumber) {
        held.number = number;
        self.frames[at].touch();
        self.table.set(number, at);
    }

    /// Makes the frame one of the free ones.
    fn empty(&self, at: usize, held: &mut Held) {
        held.number = PageNumber::NONE;
        held.page_mut().clear();
        self.frames.give_back(at);
    }

    /// A frame with nothing in it, latched.
    fn claim(&self) -> Option<(usize, RwLockWriteGuard<'_, Held>)> {
        if let Some(at) = self.frames.take() {
            let mut held = self.frames[at].held.write().expect("nothing panics with a latch");
            held.page.get_or_insert_with(Page::zeroed);
            return Some((at, held));
        }
        self.evict()
    }

    fn bring_alone(&self, number: PageNumber) -> MutexGuard<'_, ()> {
        let stripe = &self.bringing[number.get() as usize % STRIPES];
        stripe.lock().expect("nothing panics while a page is brought")
    }
}

fn check<E>(number: PageNumber) -> Result<(), FixError<E>> {
    let known = number != PageNumber::NONE && number.get() < PAGES_MAX;
    if known { Ok(()) } else { Err(FixError::NoSuchPage(number)) }
}

impl Deref for ReadLatch<'_> {
    type Target = Page;

    #[inline]
    fn deref(&self) -> &Page {
        self.0.page()
    }
}

impl Deref for WriteLatch<'_> {
    type Target = Page;

    #[inline]
    fn deref(&self) -> &Page {
        self.0.page()
    }
}

impl DerefMut for WriteLatch<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Page {
        self.0.page_mut()
    }
}

impl<B> fmt::Debug for Pool<B> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pool").field("frames", &self.frames.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ReadLatch<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("ReadLatch").field(self.0.page()).finish()
    }
}

impl fmt::Debug for WriteLatch<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("WriteLatch").field(self.0.page()).finish()
    }
}

#[cfg(test)]
mod tests;
