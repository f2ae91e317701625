//! Flushes that take long, beside the requests that follow them.
//!
//! Promise: a flush is asked of the disk after the request that wants it was heard; all that wait
//! when one begins share it; each is answered once.
//! Never: starts a thread before a flush took longer than waking one does.

use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use holdfast_io::{Blocks, BlocksError};
use holdfast_peers::in_hand::{Doing, InHand};

use crate::abort::AbortOnPanic;
use crate::wake::WakeUp;

/// A flush that takes no longer than this is done at once: waking another thread, and being woken
/// by it, costs as much.
const AT_ONCE: Duration = Duration::from_micros(50);

/// Requests that wait for one flush of one queue. Whoever sends more waits himself.
const WAITING_MAX: usize = 1024;

/// What one flush came to, and who waited for it.
pub(crate) struct Flushed {
    pub(crate) cookies: Vec<u64>,
    pub(crate) result: Result<(), BlocksError>,
}

/// The flushes of one queue.
pub(crate) struct Flusher<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    worker: Option<Worker<'scope>>,
    /// How long the last one took.
    last_ns: Arc<AtomicU64>,
    waiting: usize,
}

struct Worker<'scope> {
    queue: Arc<Queue>,
    thread: ScopedJoinHandle<'scope, ()>,
}

struct Queue {
    lists: Mutex<Lists>,
    asked: Condvar,
    answered: WakeUp,
}

#[derive(Default)]
struct Lists {
    asked: Vec<u64>,
    answered: Vec<Flushed>,
    is_ended: bool,
}

impl<'scope, 'env> Flusher<'scope, 'env> {
    pub(crate) fn new(scope: &'scope Scope<'scope, 'env>) -> Self {
        Self { scope, worker: None, last_ns: Arc::new(AtomicU64::new(0)), waiting: 0 }
    }

    /// Flushes for `cookie`: at once, or later on another thread, which is `None`.
    pub(crate) fn flush(&mut self, cookie: u64, blocks: &'env dyn Blocks) -> Option<Flushed> {
        let is_slow = u128::from(self.last_ns.load(Ordering::Relaxed)) > AT_ONCE.as_nanos();
        if is_slow && self.hand_over(cookie, blocks) {
            return None;
        }
        let result = timed_flush(blocks, &self.last_ns);
        Some(Flushed { cookies: vec![cookie], result })
    }

    fn hand_over(&mut self, cookie: u64, blocks: &'env dyn Blocks) -> bool {
        if self.worker.is_none() {
            self.worker = self.start(blocks);
        }
        let Some(worker) = &self.worker else { return false };
        if self.waiting >= WAITING_MAX {
            return false;
        }
        worker.queue.lists().asked.push(cookie);
        worker.queue.asked.notify_one();
        self.waiting += 1;
        true
    }

    /// `None` where the machine has no descriptor or thread left: then the asker waits itself.
    fn start(&self, blocks: &'env dyn Blocks) -> Option<Worker<'scope>> {
        let answered = WakeUp::new().ok()?;
        let queue = Arc::new(Queue { lists: Mutex::default(), asked: Condvar::new(), answered });
        let (theirs, last_ns) = (queue.clone(), self.last_ns.clone());
        let builder = Builder::new().name("flush".into());
        let thread = builder.spawn_scoped(self.scope, move || work(&theirs, blocks, &last_ns));
        Some(Worker { queue, thread: thread.ok()? })
    }

    /// What becomes readable when a flush has ended; `None` if nobody waits for one.
    pub(crate) fn waited_for(&self) -> Option<BorrowedFd<'_>> {
        let worker = self.worker.as_ref().filter(|_| self.waiting > 0)?;
        Some(worker.queue.answered.as_fd())
    }

    /// The flushes that have ended since the last call.
    pub(crate) fn take(&mut self) -> Vec<Flushed> {
        let Some(worker) = self.worker.as_ref().filter(|_| self.waiting > 0) else {
            return Vec::new();
        };
        worker.queue.answered.calm();
        let flushed = mem::take(&mut worker.queue.lists().answered);
        self.waiting -= flushed.iter().map(|one| one.cookies.len()).sum::<usize>();
        flushed
    }

    /// Waits for all that were handed over.
    pub(crate) fn finish(&mut self) -> Vec<Flushed> {
        let Some(Worker { queue, thread }) = self.worker.take() else { return Vec::new() };
        queue.lists().is_ended = true;
        queue.asked.notify_one();
        thread.join().expect("panics abort");
        self.waiting = 0;
        mem::take(&mut queue.lists().answered)
    }
}

impl Drop for Flusher<'_, '_> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Queue {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().expect("panics abort")
    }

    /// Who waits; nobody, when all was answered and no more will come.
    fn next(&self) -> Vec<u64> {
        let is_idle = |lists: &mut Lists| lists.asked.is_empty() && !lists.is_ended;
        let mut lists = self.asked.wait_while(self.lists(), is_idle).expect("panics abort");
        mem::take(&mut lists.asked)
    }
}

fn work(queue: &Queue, blocks: &dyn Blocks, last_ns: &AtomicU64) {
    let _guard = AbortOnPanic;
    loop {
        let cookies = queue.next();
        if cookies.is_empty() {
            return;
        }
        let result = timed_flush(blocks, last_ns);
        queue.lists().answered.push(Flushed { cookies, result });
        queue.answered.wake();
    }
}

fn timed_flush(blocks: &dyn Blocks, last_ns: &AtomicU64) -> Result<(), BlocksError> {
    let _in_hand = InHand::take(Doing::Sync);
    let began = Instant::now();
    let result = blocks.flush();
    let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    last_ns.store(took_ns, Ordering::Relaxed);
    result
}
