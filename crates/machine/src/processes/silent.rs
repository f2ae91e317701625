//! Threads that look at processes, one after another, and those that wait for ever.
//!
//! Promise: a thread that was given up ends as soon as it gets its answer; until then it is known
//! for which process it waits.
//! Never: gives up a thread that has answered.

use super::process::Process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many of each kind may keep a thread for ever.
pub(super) const SILENT_MAX: usize = 8;

/// Who takes places from whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane(pub(super) &'static str);

impl Lane {
    pub(super) fn of(counts: bool) -> Lane {
        Lane(if counts { "those that count" } else { "others" })
    }
}

/// A thread that was given up.
struct Silent {
    pid: u32,
    lane: Lane,
    worker: Arc<()>,
}

static SILENT: Mutex<Vec<Silent>> = Mutex::new(Vec::new());

fn silent() -> MutexGuard<'static, Vec<Silent>> {
    SILENT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lane {
    /// Whether nobody waits for this process, and there is room for one more who would.
    pub(super) fn may_ask(self, pid: u32) -> bool {
        let silent = silent();
        let is_full = silent.iter().filter(|it| it.lane == self).count() >= SILENT_MAX;
        !is_full && silent.iter().all(|it| it.pid != pid)
    }
}

/// A thread, for whoever hears what it tells.
pub(super) struct Worker<T> {
    /// Another than any other's.
    id: Arc<()>,
    lane: Lane,
    answers: Receiver<T>,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It does not come; the worker was given up.
    Silent,
    /// The worker is through, or has met a process that others wait for.
    Ended,
}

impl<T: Send> Worker<T> {
    pub(super) fn start<F>(lane: Lane, pids: &[u32], look: &Arc<F>) -> Worker<T>
    where
        T: 'static,
        F: Fn(&Process) -> T + Send + Sync + 'static,
    {
        let id = Arc::new(());
        let (sender, answers) = mpsc::channel();
        let (pids, look, known) = (pids.to_vec(), look.clone(), Known(id.clone()));
        let work = move || {
            let known = known;
            for pid in pids.into_iter().take_while(|pid| lane.may_ask(*pid)) {
                if !known.tell(&sender, look(&Process::new(pid))) {
                    return;
                }
            }
        };
        // Without a thread there is no answer.
        let _no_thread = std::thread::Builder::new().name("looks".into()).spawn(work);
        Worker { id, lane, answers }
    }

    /// What is told of the next process; a worker that is late is given up.
    pub(super) fn answer(&self, pid: u32, patience: Duration) -> Result<T, Why> {
        match self.answers.recv_timeout(patience) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => return Err(Why::Ended),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let mut silent = silent();
        // It may have come just now.
        self.answers.try_recv().map_err(|_| {
            silent.push(Silent { pid, lane: self.lane, worker: self.id.clone() });
            Why::Silent
        })
    }
}

/// A worker as the table knows it, until it ends, however that happens.
struct Known(Arc<()>);

impl Known {
    /// False once nobody hears it any more.
    fn tell<T>(&self, sender: &Sender<T>, answer: T) -> bool {
        let silent = silent();
        !silent.iter().any(|it| Arc::ptr_eq(&it.worker, &self.0)) && sender.send(answer).is_ok()
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        silent().retain(|it| !Arc::ptr_eq(&it.worker, &self.0));
    }
}
