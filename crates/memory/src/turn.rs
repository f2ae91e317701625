//! Whose turn it is: the word in a region that its last attachment has written.
//!
//! Promise: of an owner that publishes and then looks here, and another that takes its turn and
//! then looks at what is published, one finds the other, whatever either sleeps through.
//! Never: waits.

use std::sync::atomic::Ordering;

use crate::atomics::{AtomicU64, fence};
use crate::orderings::LOOK_FENCED;

/// The turn of one attachment.
pub(crate) struct Turn<'r> {
    newest: &'r AtomicU64,
    ours: u64,
}

impl<'r> Turn<'r> {
    /// The turn in which `ours` is in the word.
    #[inline]
    pub(crate) fn new(newest: &'r AtomicU64, ours: u64) -> Turn<'r> {
        Turn { newest, ours }
    }

    /// Takes it, unless somebody else did since `before` was read there.
    pub(crate) fn take(&self, before: u64) -> bool {
        // EDGE term-noted: the term is there before the generation that was attached in it.
        self.newest.compare_exchange(before, self.ours, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether nobody has taken the next one, as far as has been seen.
    #[inline]
    pub(crate) fn is_ours(&self) -> bool {
        self.newest.load(Ordering::Relaxed) == self.ours
    }
}

/// Has what follows see other hosts' stores behind all of this one's before: `write_back` brings
/// the lines of the cache that are looked at into memory, from where they are read again.
#[inline]
pub(crate) fn look_anew(write_back: impl FnOnce()) {
    write_back();
    if LOOK_FENCED {
        fence(Ordering::SeqCst);
    }
}
