//! What the owner of a log runs beside its users, in threads of its own.
//!
//! Promise: each function returns soon after it is told to stop; none ends because the device
//! fails.
//! Never: starts a thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::state::Log;

/// How long an idle thread sleeps before it looks whether it should stop.
const IDLE_WAIT: Duration = Duration::from_millis(20);

/// How long frames that nobody waits for may gather, unless there are so many bytes of them. A
/// flight of few costs a processor as much as one of many, and is in the way of who waits for one.
const GATHERING: Duration = Duration::from_millis(2);
const GATHERED_BYTES: u64 = 256 << 10;

impl Log {
    /// Drains until told to stop. A log that was poisoned is left alone.
    pub fn run_drainer(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if !self.wait_for_drain_work(IDLE_WAIT) {
                continue;
            }
            self.let_frames_gather();
            if self.drain().is_err() {
                std::thread::sleep(IDLE_WAIT);
            }
        }
    }

    /// Who waits for what it has appended, or for room, takes it to the device itself.
    fn let_frames_gather(&self) {
        let marks = self.marks();
        if marks.tail.since(marks.durable) < GATHERED_BYTES {
            std::thread::sleep(GATHERING);
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
