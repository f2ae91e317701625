//! What the owner of a log runs beside its users, in threads of its own.
//!
//! Promise: each function returns soon after it is told to stop; none ends because the device
//! fails.
//! Never: starts a thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::log::Log;

/// How long an idle thread sleeps before it looks whether it should stop.
const IDLE_WAIT: Duration = Duration::from_millis(20);

impl Log {
    /// Drains until told to stop. A log that was poisoned is left alone.
    pub fn run_drainer(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if self.wait_for_drain_work(IDLE_WAIT) && self.drain().is_err() {
                std::thread::sleep(IDLE_WAIT);
            }
        }
    }

    /// Prepares segments and writes idle watermarks until told to stop.
    pub fn run_preparer(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if !matches!(self.prepare(), Ok(true)) {
                std::thread::sleep(IDLE_WAIT);
            }
        }
    }
}
