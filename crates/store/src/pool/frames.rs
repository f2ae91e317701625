//! The frames of a pool.
//!
//! Promise: a frame is there when it is asked for, at one place for good; who asks for one that was
//! there before waits for nobody.
//! Never: makes a frame long before it is needed, since a pool may be far larger than what is used
//! of it, and an open should not take longer because of that.

use std::ops::Index;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, RwLock, RwLockWriteGuard, TryLockError};

use holdfast_pages::{Page, PageNumber};

/// Frames that are made at once.
const PART: usize = 1024;

/// So many frames, of which those are made that were asked for, and some beside each.
pub(crate) struct Frames {
    parts: Box<[OnceLock<Box<[Frame; PART]>>]>,
    len: usize,
    free: Mutex<Free>,
}

/// Frames that nothing is in.
#[derive(Default)]
struct Free {
    /// Those that something was in before,
    left: Vec<usize>,
    /// and all from this one on.
    unused: usize,
}

pub(crate) struct Frame {
    pub(crate) held: RwLock<Held>,
    /// Since the hand passed.
    pub(crate) used: AtomicBool,
}

/// What is in a frame.
pub(crate) struct Held {
    /// [`PageNumber::NONE`] if nothing is.
    pub(crate) number: PageNumber,
    /// Memory that it gets when something first comes, since a large pool may never be full.
    pub(crate) page: Option<Page>,
}

impl Frames {
    pub(crate) fn new(len: usize) -> Frames {
        let parts = (0..len.div_ceil(PART)).map(|_| OnceLock::new()).collect();
        Frames { parts, len, free: Mutex::default() }
    }

    /// One that nothing is in, if there is one; nobody else gets it.
    pub(crate) fn take(&self) -> Option<usize> {
        let mut free = self.free();
        free.left.pop().or_else(|| {
            let at = free.unused;
            free.unused = self.len.min(at + 1);
            (at < self.len).then_some(at)
        })
    }

    /// Says that nothing is in a frame any more.
    pub(crate) fn give_back(&self, at: usize) {
        self.free().left.push(at);
    }

    /// Those that something is in.
    pub(crate) fn used(&self) -> impl Iterator<Item = usize> + use<> {
        let free = self.free();
        let mut is_used = vec![true; free.unused];
        free.left.iter().for_each(|at| is_used[*at] = false);
        (0..free.unused).filter(move |at| is_used[*at])
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().expect("nothing panics with the list")
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Index<usize> for Frames {
    type Output = Frame;

    #[inline]
    fn index(&self, at: usize) -> &Frame {
        &self.parts[at / PART].get_or_init(new_part)[at % PART]
    }
}

#[cold]
fn new_part() -> Box<[Frame; PART]> {
    let part: Box<[Frame]> = (0..PART).map(|_| Frame::new()).collect();
    part.try_into().unwrap_or_else(|_| unreachable!("a part has as many as were made"))
}

impl Held {
    #[inline]
    pub(crate) fn page(&self) -> &Page {
        self.page.as_ref().expect("what has been claimed has memory")
    }

    #[inline]
    pub(crate) fn page_mut(&mut self) -> &mut Page {
        self.page.as_mut().expect("what has been claimed has memory")
    }
}

impl Frame {
    fn new() -> Frame {
        let held = Held { number: PageNumber::NONE, page: None };
        Frame { held: RwLock::new(held), used: AtomicBool::new(false) }
    }

    /// Says that the page was used. Most pages were a moment ago, so the line is read, not written.
    #[inline]
    pub(crate) fn touch(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, Held>> {
        match self.held.try_write() {
            Ok(held) => Some(held),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => panic!("nothing panics with a latch"),
        }
    }
}

#[cfg(test)]
mod tests;
