//! One word of a region that lets one caller in at a time and outlives callers that die inside.
//!
//! Promise: at most one living holder; what a holder did is seen by the next one; a lock left by
//! a dead holder is taken over at once, without a timeout.
//! Never: decides who is dead. The region knows: the kernel lets one attachment serve at a time
//! (`backing`), so a holder with any other number than ours died with an earlier attachment.
//!
//! Nothing needs repair after a take-over: an append's only visible step is the store of the tail,
//! so a holder that died before it left nothing, and one that died after it left a whole frame.
//!
//! The word: 0 = free; else bits 0..31 = number of the holder's attachment, bit 31 = somebody may
//! sleep on the word (U. Drepper, "Futexes Are Tricky", section 5, with the holder kept as well).

use std::sync::atomic::Ordering;

use crate::atomics::AtomicU32;
use crate::futex::{self, Scope};
use crate::orderings::{LOCK_GIVE, LOCK_TAKE};

/// Set while somebody may sleep on the word.
const SLEEPERS: u32 = 1 << 31;

/// The largest number an attachment can have: it shares the word with the sleepers' bit.
pub(crate) const HOLDER_MAX: u32 = SLEEPERS - 1;

/// Looks at a busy lock before sleeping. An append holds it for about as long as it takes to copy
/// a frame, less than a sleep costs.
const SPINS: u32 = if cfg!(model) { 1 } else { 100 };

const FREE: u32 = 0;

/// The lock word, as it lies in the control page.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Lock {
    word: AtomicU32,
}

impl Lock {
    /// Takes the lock for attachment `holder`, sleeping while a living attachment has it.
    ///
    /// `dead` tells whether an attachment is gone for good.
    #[inline]
    pub(crate) fn take(&self, holder: u32, dead: impl Fn(u32) -> bool) {
        assert!(holder != FREE && holder <= HOLDER_MAX, "an attachment's number fits the word");
        if self.exchange(FREE, holder) {
            return;
        }
        for _ in 0..SPINS {
            if self.word.load(Ordering::Relaxed) == FREE && self.exchange(FREE, holder) {
                return;
            }
            std::hint::spin_loop();
        }
        // Whoever slept takes the lock with the bit set: others may still sleep.
        while !self.try_take(holder | SLEEPERS, &dead) {
            self.sleep(&dead);
        }
    }

    /// Gives the lock back and wakes one sleeper.
    #[inline]
    pub(crate) fn give(&self, holder: u32) {
        // EDGE lock-hand-over: all that was done under the lock comes before it is free.
        let was = self.word.swap(FREE, LOCK_GIVE);
        assert!(was & HOLDER_MAX == holder, "only the holder gives the lock back");
        if was & SLEEPERS != 0 {
            futex::wake(&self.word, 1, Scope::Process);
        }
    }

    /// One attempt to take a free lock or one whose holder is dead.
    fn try_take(&self, mine: u32, dead: &impl Fn(u32) -> bool) -> bool {
        let seen = self.word.load(Ordering::Relaxed);
        let open = seen == FREE || dead(seen & HOLDER_MAX);
        open && self.exchange(seen, mine)
    }

    /// Announces a sleeper and sleeps, unless the lock opened meanwhile.
    fn sleep(&self, dead: &impl Fn(u32) -> bool) {
        let seen = self.word.load(Ordering::Relaxed);
        if seen == FREE || dead(seen & HOLDER_MAX) {
            return;
        }
        let announced = seen | SLEEPERS;
        if seen == announced || self.exchange(seen, announced) {
            futex::wait_while(&self.word, announced, None, Scope::Process);
        }
    }

    #[inline]
    fn exchange(&self, from: u32, to: u32) -> bool {
        // EDGE lock-hand-over: having taken the lock, all that was done under it is seen.
        self.word.compare_exchange(from, to, LOCK_TAKE, Ordering::Relaxed).is_ok()
    }
}

#[cfg(model)]
impl Lock {
    /// A free lock outside any region, for the models.
    pub(crate) fn new() -> Lock {
        Lock { word: AtomicU32::new(FREE) }
    }
}
