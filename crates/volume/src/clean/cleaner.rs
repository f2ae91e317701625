//! How far the cleaner has come.
//!
//! Promise: is never ahead of the home.
//! Never: changes the home or the log.

use holdfast_log::Lsn;

use super::aside::{Aside, PassedOver};
use super::error::CleanError;

/// How far the home is.
pub(crate) struct Cleaner {
    pub(super) applied: Lsn,
    /// The next window may have been applied in part by an earlier process.
    pub(super) repeats: bool,
    /// The log has durably what an earlier process said of the home.
    pub(super) mark_is_durable: bool,
    pub(super) aside: Aside,
}

impl Cleaner {
    pub(crate) fn new(applied: Lsn, aside: Aside) -> Cleaner {
        Cleaner { applied, repeats: true, mark_is_durable: false, aside }
    }

    /// What a replay passes over.
    pub(crate) fn passed_over(&self) -> PassedOver {
        self.aside.passed_over()
    }

    /// Everything is applied, and numbers of nodes begin anew.
    pub(crate) fn close_aside(&mut self) -> Result<(), CleanError> {
        self.aside.close().map_err(CleanError::Aside)
    }
}
