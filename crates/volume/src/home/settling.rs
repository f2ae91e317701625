//! Who waits until the home can tell how much room it has, and with whom no thread waits.
//!
//! A home counts room that what waits in the log may give back. So whoever finds none is told so
//! only when the home has what was logged before he asked first.
//!
//! Promise: one who waits is known by whom he works for, from when he asked first.
//! Never: waits; that is [`wait`]'s.

mod wait;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_log::Lsn;

/// Who waits so, and how often the cleaner has failed.
#[derive(Default)]
pub(crate) struct Settling {
    waiting: Mutex<HashMap<Option<u32>, Since>>,
    failures: AtomicU64,
}

/// What a user waits for.
#[derive(Clone, Copy)]
struct Since {
    /// The home is to have everything below.
    upto: Lsn,
    /// How often the cleaner had failed before.
    failures: u64,
    /// What nobody can reach had no room in the log, and may give some of the home's back.
    has_to_wait: bool,
}

impl Settling {
    fn waiting(&self) -> MutexGuard<'_, HashMap<Option<u32>, Since>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cleaner has failed; it tries again, and nobody knows how often.
    pub(crate) fn cleaner_failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}
