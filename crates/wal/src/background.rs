//! The threads of a log.
//!
//! Promise: they are there while the log is open, if its options say so, and joined when it is
//! closed or dropped; none ends because the device fails. A child that was forked has none of them,
//! and waits for none.
//! Never: needed for correctness, except that tickets resolve by themselves.

use std::io;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::options::Background;
use crate::shared::Shared;

/// How long the drainer sleeps if nobody appends. It is woken to stop.
const DRAINER_WAIT: Duration = Duration::from_secs(1);
/// How long it leaves a device alone that refused a segment.
const RETRY_WAIT: Duration = Duration::from_millis(20);
/// How long the preparer sleeps while there is traffic, and while there is none.
const PREPARER_WAIT: Duration = Duration::from_millis(5);
const PREPARER_IDLE_WAIT: Duration = Duration::from_millis(200);
/// How long is waited for a thread before it is woken once more.
const STOP_WAIT: Duration = Duration::from_millis(1);

/// The threads that run, if any.
#[derive(Debug)]
pub(crate) struct Threads {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts what is asked for.
    pub(crate) fn start(shared: &Arc<Shared>, which: Background) -> io::Result<Threads> {
        let (stop, handles) = (Arc::new(AtomicBool::new(false)), Vec::new());
        let mut threads = Threads { shared: Arc::clone(shared), stop, handles };
        if which != Background::None {
            threads.run("holdfast-prepare", prepare)?;
        }
        if which == Background::DrainAndPrepare {
            shared.drained.store(true, Ordering::Relaxed);
            threads.run("holdfast-drain", drain)?;
        }
        Ok(threads)
    }

    fn run(&mut self, name: &str, job: fn(&Shared, &AtomicBool)) -> io::Result<()> {
        let (shared, stop) = (Arc::clone(&self.shared), Arc::clone(&self.stop));
        let thread = Builder::new().name(name.to_owned()).spawn(move || job(&shared, &stop))?;
        self.handles.push(thread);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let opener = self.shared.log.opener();
        if !opener.is_here() {
            take(&mut self.handles).into_iter().for_each(|handle| opener.join(handle));
            return;
        }
        self.stop.store(true, Ordering::Relaxed);
        for handle in self.handles.drain(..) {
            // Again and again: a thread may have looked before it was told, and sleep after.
            while !handle.is_finished() {
                self.shared.region.wake_tail_waiters();
                handle.thread().unpark();
                std::thread::sleep(STOP_WAIT);
            }
            opener.join(handle);
        }
        self.shared.drained.store(false, Ordering::Relaxed);
        self.shared.wake(true);
    }
}

fn drain(shared: &Shared, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        if shared.log.wait_for_drain_work(DRAINER_WAIT) && shared.drain().is_err() {
            std::thread::park_timeout(RETRY_WAIT);
        }
    }
}

fn prepare(shared: &Shared, stop: &AtomicBool) {
    let mut seen = shared.log.marks().tail;
    while !stop.load(Ordering::Relaxed) {
        if matches!(shared.log.prepare(), Ok(true)) {
            continue;
        }
        let tail = shared.log.marks().tail;
        let moved = std::mem::replace(&mut seen, tail) != tail;
        std::thread::park_timeout(if moved { PREPARER_WAIT } else { PREPARER_IDLE_WAIT });
    }
}
