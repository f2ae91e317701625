//! Waiting until the home has what was logged before somebody asked for room.
//!
//! Promise: who asks again and again is told in the end, whatever others log meanwhile: when the
//! home has that much, or log or home has failed on the way.
//! Never: cleans; that is the cleaner's, and many may wait for it.

use std::sync::atomic::Ordering;

use holdfast_io::tree::asker;

use super::Since;
use crate::volume::DirectoryVolume;

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
