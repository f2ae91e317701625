//! What the owner of a log runs beside its users, in threads of its own.
//!
//! Where nothing happens they rest: the drainer is woken by who appends, all of whom are in this
//! process, and wakes the preparer.
//!
//! Promise: each function returns soon after it is told to stop, and its thread woken; none ends
//! because the device fails.
//! Never: starts a thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::state::Log;

/// How long a thread sleeps that has nothing to do for the moment, or whose device fails.
const IDLE_WAIT: Duration = Duration::from_millis(20);

/// How long one rests that is woken by whoever has work for it, before it looks for itself.
const REST: Duration = Duration::from_millis(250);

/// How long frames that nobody waits for may gather, unless there are so many bytes of them. A
/// flight of few costs a processor as much as one of many, and is in the way of who waits for one.
const GATHERING: Duration = Duration::from_millis(2);
const GATHERED_BYTES: u64 = 256 << 10;

impl Log {
    /// Drains until told to stop. A log that was poisoned is left alone. Who tells it to stop wakes
    /// those who wait for the region's tail.
    pub fn run_drainer(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if !self.wait_for_drain_work(REST) {
                continue;
            }
            self.wake_preparer();
            self.let_frames_gather();
            if self.drain().is_err() {
                thread::sleep(IDLE_WAIT);
            }
        }
    }

    /// There are new frames, so segments may be needed soon. For who drains with [`Self::drain`].
    pub fn wake_preparer(&self) {
        self.preparer.wake();
    }

    /// Who waits for what it has appended, or for room, takes it to the device itself.
    fn let_frames_gather(&self) {
        let marks = self.marks();
        if marks.tail.since(marks.durable) < GATHERED_BYTES {
            thread::sleep(GATHERING);
        }
    }

    /// Prepares segments and writes idle watermarks until told to stop. Where nothing is appended
    /// it looks less and less often, until somebody drains.
    pub fn run_preparer(&self, stop: &AtomicBool) {
        let (mut pause, mut seen) = (IDLE_WAIT, self.marks().tail);
        while !stop.load(Ordering::Relaxed) {
            if matches!(self.prepare(), Ok(true)) {
                pause = IDLE_WAIT;
                continue;
            }
            let tail = self.marks().tail;
            // What memory is to get beforehand it gets a piece at a time.
            let is_filling = self.region.populate_some();
            let is_busy = std::mem::replace(&mut seen, tail) != tail || is_filling;
            pause = if is_busy { IDLE_WAIT } else { (pause * 2).min(REST) };
            if pause == IDLE_WAIT {
                // Each frame would wake it.
                thread::sleep(pause);
            } else {
                let has_work = || self.marks().tail != tail || stop.load(Ordering::Relaxed);
                self.preparer.rest(pause, has_work);
            }
        }
    }
}
