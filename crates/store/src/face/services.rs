//! What has to be done beside transactions, a step at a time.
//!
//! Promise: a step that fails leaves the store as good as it was, and is done again later; threads
//! do nothing but call steps, and are joined when the store is closed or dropped.
//! Never: takes a latch of a page, but to undo what losers did, or if it is told to be classical;
//! is needed for correctness.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use holdfast_io::Opener;
use holdfast_log::Lsn;

use crate::engine::Engine;
use crate::error::ServiceError;
use crate::log::StoreLog;

/// How long what was put waits for a frame, and a frame for its device, if nobody waits for either.
const TICK: Duration = Duration::from_millis(5);
/// How long is waited before it is looked again whether there is something to archive.
const IDLE: Duration = Duration::from_millis(10);
/// Windows of the archive that may wait to be merged: two merges.
const UNMERGED_MAX: usize = 32;
/// How many times what begins a cleaning may wait to be cleaned. What is not clean cannot be left
/// out of the archive, whatever is to be kept.
const UNCLEAN_MAX: u64 = 2;
/// How long a device is left alone that failed.
const RETRY: Duration = Duration::from_millis(50);

/// One thing that has to be done now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Hands records to the log that were put and that nobody waits for.
    Flush,
    /// Brings the log to its device.
    Drain,
    /// Gets a segment of the log ready.
    Prepare,
    /// Takes what the log has got.
    Follow,
    /// Notes how far the store is.
    Checkpoint,
    /// Archives a window of the log, and gives it back.
    Archive,
    /// Writes down how far the archive is.
    Base,
    /// Brings some pages on the device up to date.
    Clean,
    /// Makes one run of the archive of many.
    Merge,
    /// Rolls one loser back, frees pages that could not be freed before, or some of a tree that was
    /// dropped, or merges leaves that could not be merged before.
    Undo,
}

impl Service {
    /// All of them.
    pub const ALL: [Service; 10] = [
        Service::Flush,
        Service::Drain,
        Service::Prepare,
        Service::Follow,
        Service::Checkpoint,
        Service::Archive,
        Service::Base,
        Service::Clean,
        Service::Merge,
        Service::Undo,
    ];
}

/// What services work on.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) engine: Arc<Engine>,
    pub(crate) log: StoreLog,
}

impl Work {
    /// One step. True if there was something to do.
    pub(crate) fn step(&self, service: Service) -> Result<bool, ServiceError> {
        let Work { engine, log } = self;
        let (pages, stream) = (&engine.pages, engine.stream());
        match service {
            Service::Flush => {
                let before = stream.stable();
                let after = stream.flush().map_err(ServiceError::Flush)?;
                Ok(after > before)
            }
            Service::Drain => log.drain().map_err(ServiceError::Drain),
            Service::Prepare => log.prepare().map_err(ServiceError::Prepare),
            Service::Follow => pages.follow().map_err(ServiceError::Follow),
            Service::Checkpoint => engine.checkpoint().map_err(ServiceError::Checkpoint),
            Service::Archive => pages.archive().map_err(ServiceError::Archive),
            Service::Base => pages.write_base().map_err(ServiceError::Archive),
            Service::Clean => engine.clean().map_err(ServiceError::Clean),
            Service::Merge => pages.merge().map_err(ServiceError::Merge),
            Service::Undo => {
                let undone = engine.undo().map_err(|error| ServiceError::Undo(error.into()))?;
                Ok(undone || engine.clear_dropped().map_err(ServiceError::Undo)?)
            }
        }
    }
}

/// The threads of a store. A child that was forked has none of them, and waits for none.
#[derive(Debug)]
pub(crate) struct Threads {
    shared: Arc<Shared>,
    opener: Opener,
    handles: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    work: Work,
    checkpoint_every: Option<Duration>,
    stop: AtomicBool,
    trouble: Mutex<Option<ServiceError>>,
}

impl Threads {
    pub(crate) fn start(work: Work, checkpoint_ms: Option<u32>) -> io::Result<Threads> {
        let checkpoint_every = checkpoint_ms.map(|ms| Duration::from_millis(ms.into()));
        let (stop, trouble) = (AtomicBool::new(false), Mutex::new(None));
        let shared = Arc::new(Shared { work, checkpoint_every, stop, trouble });
        let (opener, handles) = (Opener::this_process(), Vec::new());
        let mut threads = Threads { shared, opener, handles };
        threads.run("holdfast-follow", follow)?;
        threads.run("holdfast-work", work_on)?;
        Ok(threads)
    }

    fn run(&mut self, name: &str, job: fn(&Shared)) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = Builder::new().name(name.to_owned()).spawn(move || job(&shared))?;
        self.handles.push(thread);
        Ok(())
    }

    /// What failed last, since this was asked.
    pub(crate) fn trouble(&self) -> Option<ServiceError> {
        self.shared.trouble.lock().expect("nothing panics with the trouble").take()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let opener = self.opener;
        for handle in self.handles.drain(..) {
            if opener.is_here() {
                handle.thread().unpark();
            }
            opener.join(handle);
        }
    }
}

impl Shared {
    /// One step. True if there was something to do, and it is done.
    fn step(&self, service: Service) -> bool {
        match self.work.step(service) {
            Ok(did) => did,
            Err(error) => {
                *self.trouble.lock().expect("nothing panics with the trouble") = Some(error);
                std::thread::park_timeout(RETRY);
                false
            }
        }
    }

    /// Whether so much is not clean that more is kept for that than was asked for.
    fn is_unclean(&self) -> bool {
        let engine = &self.work.engine;
        // Others archive and clean between the two looks, and an archive may have lost its end.
        let bytes = engine.pages.archived().checked_since(engine.pages.cleaned());
        bytes.is_some_and(|bytes| bytes > UNCLEAN_MAX * engine.clean_every_bytes)
    }

    /// Whether so many windows are not merged that a page's records are in too many places.
    fn is_behind(&self) -> bool {
        let archive = self.work.engine.pages.runs();
        let narrow = archive.runs().iter().filter(|run| run.span().level == 0);
        narrow.count() > UNMERGED_MAX
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Keeps up with transactions.
fn follow(shared: &Shared) {
    let (mut tail, mut checkpoint) = (Lsn(0), Instant::now());
    while !shared.is_stopped() {
        shared.step(Service::Flush);
        shared.step(Service::Follow);
        if shared.checkpoint_every.is_some_and(|every| checkpoint.elapsed() >= every) {
            checkpoint = Instant::now();
            shared.step(Service::Checkpoint);
        }
        tail = drain_what_is_old(shared, tail);
        let until = shared
            .checkpoint_every
            .map_or(TICK, |every| every.saturating_sub(checkpoint.elapsed()).min(TICK));
        std::thread::park_timeout(until);
    }
}

/// Brings to its device what has waited for longer than a tick, so that it does not get between
/// those who wait for the device themselves. Returns where the log ends now.
fn drain_what_is_old(shared: &Shared, tail_before: Lsn) -> Lsn {
    let Some(log) = shared.work.log.own() else { return tail_before };
    let marks = log.marks();
    if marks.durable < tail_before {
        shared.step(Service::Drain);
    }
    marks.tail
}

/// Does what nobody waits for.
fn work_on(shared: &Shared) {
    const SERVICES: [Service; 5] =
        [Service::Archive, Service::Prepare, Service::Clean, Service::Merge, Service::Undo];
    // Whoever has opened the store has something to do with it first.
    let mut is_idle = true;
    while !shared.is_stopped() {
        if is_idle {
            std::thread::park_timeout(IDLE);
        }
        is_idle = !SERVICES.map(|service| shared.step(service)).contains(&true);
        // While runs are made faster than they are merged or cleaned, that comes first, and one
        // does not wait for the other: whoever writes then makes the room in the log that he needs
        // himself.
        let mut goes_on = true;
        while goes_on && !shared.is_stopped() {
            goes_on = shared.is_behind() && shared.step(Service::Merge);
            goes_on |= shared.is_unclean() && shared.step(Service::Clean);
        }
    }
}
