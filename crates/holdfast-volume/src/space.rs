//! Whether the home has room for what is acknowledged.
//!
//! A change is acknowledged long before it reaches the home, so the question "is the disk full"
//! must be asked at once: later nobody listens.
//!
//! Promise: what is admitted fits the home together with everything admitted before it and not
//! applied yet, as far as the free space reported by the home tells.
//! Never: refuses while plenty is free.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use holdfast_io::{Clock, Files};
use holdfast_log::{CommitLog, Lsn};

use crate::tree::Errno;

/// How long an answer of the home counts while much is free.
const ANSWER_NS: u64 = 100_000_000;
/// Kept free for directories and the home's own needs.
const MARGIN_BYTES: u64 = 4 << 20;

/// The last answer of the home, less what was admitted since.
pub(crate) struct SpaceGate {
    answer: Mutex<Answer>,
    /// As many bytes of the log as lie below are in the home, though not all synced or released.
    home_has: AtomicU64,
}

struct Answer {
    /// What may still be admitted. Not the free space: between two answers some of what waits is
    /// applied, and waits no more although the free space it took was counted as free.
    room_bytes: u64,
    asked_at_ns: u64,
}

impl SpaceGate {
    pub(crate) fn new() -> SpaceGate {
        let answer = Mutex::new(Answer { room_bytes: 0, asked_at_ns: 0 });
        SpaceGate { answer, home_has: AtomicU64::new(0) }
    }

    /// The home has taken so many bytes that the window being applied is as good as at `upto`.
    pub(crate) fn came_home(&self, upto: Lsn) {
        self.home_has.fetch_max(upto.0, Ordering::Relaxed);
    }

    /// Bytes in the log that take no room in the home yet. A window that is being applied waits no
    /// more in so far as it takes room there already.
    pub(crate) fn waiting_bytes(&self, log: &dyn CommitLog) -> u64 {
        // Looked at before the marks, it is never ahead of the tail.
        let home_has = self.home_has.load(Ordering::Relaxed);
        let marks = log.marks();
        marks.tail.0.saturating_sub(marks.released.0.max(home_has))
    }

    /// `ENOSPC` if `bytes` more do not fit behind the `waiting_bytes` that are not applied yet.
    pub(crate) fn admit(
        &self,
        home: &dyn Files,
        clock: &dyn Clock,
        bytes: u64,
        waiting_bytes: impl FnOnce() -> u64,
    ) -> Result<(), Errno> {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = clock.monotonic_ns();
        if now_ns.saturating_sub(answer.asked_at_ns) >= ANSWER_NS || answer.room_bytes < bytes {
            let taken_bytes = waiting_bytes().saturating_add(MARGIN_BYTES);
            answer.room_bytes = home.space()?.available_bytes.saturating_sub(taken_bytes);
            answer.asked_at_ns = now_ns;
        }
        answer.room_bytes = answer.room_bytes.checked_sub(bytes).ok_or(Errno::NOSPC)?;
        Ok(())
    }
}
