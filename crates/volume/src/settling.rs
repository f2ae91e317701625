//! Who waits until the home can tell how much room it has, and with whom no thread waits.
//!
//! A home counts room that what waits in the log may give back. So whoever finds none is told so
//! only when the home has what was logged before he asked first.
//!
//! Promise: who asks again and again is told in the end, whatever others log meanwhile: when the
//! home has that much, or log or home has failed on the way.
//! Never: cleans; that is the cleaner's, and many may wait for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_log::Lsn;

use crate::volume::DirectoryVolume;
use holdfast_io::tree::asker;

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

impl DirectoryVolume {
    /// Whether the home has, or will not have for now, what it was to have when whom this thread
    /// works for began to wait. A log or a home that fails cannot say that there is any room.
    pub(crate) fn has_settled(&self) -> bool {
        let user = asker().user;
        let Some(since) = self.settling.waiting().get(&user).copied() else { return false };
        let has_failed = self.settling.failures.load(Ordering::Relaxed) != since.failures
            || self.log.commit(since.upto).is_err();
        let is_home = self.log.marks().released >= since.upto;
        if is_home && !has_failed && since.has_to_wait {
            self.remove_unreachable();
            self.settle_from_here(false);
            return false;
        }
        is_home || has_failed
    }

    /// Whom this thread works for waits from now on, if he does not yet; or he waits no more.
    pub(crate) fn settles(&self, waits: bool) {
        let user = asker().user;
        if !waits {
            self.settling.waiting().remove(&user);
        } else if !self.settling.waiting().contains_key(&user) {
            let has_to_wait = self.remove_unreachable();
            self.settle_from_here(has_to_wait);
        }
    }

    fn settle_from_here(&self, has_to_wait: bool) {
        let failures = self.settling.failures.load(Ordering::Relaxed);
        let since = Since { upto: self.log.marks().tail, failures, has_to_wait };
        self.settling.waiting().insert(asker().user, since);
    }
}
