//! A volume whose memory acknowledges for as long as the power is to be relied on.
//!
//! Promise: memory acknowledges only while the keeper's lease is held, the log says what that
//! means, and no more waits for the device than the hold-up covers. The keeper hears that the lease
//! was given up only after all that was acknowledged under it is on the device.
//! Never: holds a lease longer than it was given for, whatever becomes of the keeper.

use holdfast_attach::bond::RegionNote;
use holdfast_config::claims::Verdict;
use holdfast_io::Files;
use holdfast_log::{CommitError, CommitLog, Log};
use holdfast_power::lease::{Page, now_ms};
use holdfast_volume::{Lease, words};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often is looked whether the lease is held. Who acknowledges looks each time.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The lease of one volume.
pub(super) struct Leased {
    page: Page,
    /// The directory of its log.
    files: Arc<dyn Files>,
    /// What is to be in place before memory acknowledges is, and whoever reads this sees it there:
    /// set with release, read with acquire. It takes no lease back: who acknowledges asks the page
    /// after it, and that does.
    is_ready: AtomicBool,
    /// What acknowledgements mean while it is held.
    held: Verdict,
    /// What they mean otherwise.
    given_up: Verdict,
    /// Most bytes that may wait for the device while it is not held.
    dirty_bytes_max: u64,
}

impl Lease for Leased {
    fn is_held(&self) -> bool {
        // EDGE leased: what is to be in place is, for whoever acknowledges because of it.
        self.is_ready.load(Ordering::Acquire) && self.page.is_held()
    }

    fn is_hurried(&self) -> bool {
        self.page.read().is_hurried(now_ms())
    }
}

/// What was done about a lease, so far.
#[derive(Default)]
struct Done {
    /// The keeper was told that it was given up, after it had been taken back so often.
    told: Option<u64>,
    /// Something went wrong, and was said.
    is_failing: bool,
}

impl Leased {
    /// One that is not held yet.
    pub(super) fn new(
        (page, files): (Page, Arc<dyn Files>),
        (held, given_up): (Verdict, Verdict),
        dirty_bytes_max: u64,
    ) -> Leased {
        let is_ready = AtomicBool::new(false);
        Leased { page, files, is_ready, held, given_up, dirty_bytes_max }
    }

    /// What acknowledgements mean while it is held.
    pub(super) fn verdict_while_held(&self) -> &Verdict {
        &self.held
    }

    /// Begins and ends what the lease is for, whenever it begins and ends, until `stop`. `tell`
    /// hears of each time that it was taken back, and nothing is left of it.
    pub(super) fn follow(&self, log: &Log, stop: &AtomicBool, tell: &dyn Fn(u64)) {
        let mut done = Done::default();
        while !stop.load(Ordering::Relaxed) {
            let stepped = self.step(log, &mut done, tell);
            if let Err(error) = &stepped
                && !done.is_failing
            {
                tracing::error!("memory acknowledges nothing: {error}");
            }
            done.is_failing = stepped.is_err();
            thread::park_timeout(LOOK_EVERY);
        }
        self.is_ready.store(false, Ordering::Relaxed);
    }

    fn step(&self, log: &Log, done: &mut Done, tell: &dyn Fn(u64)) -> Result<(), CommitError> {
        let lease = self.page.read();
        let is_held = lease.is_held(now_ms());
        let is_ready = self.is_ready.load(Ordering::Relaxed);
        if is_ready && (!is_held || done.told != Some(lease.taken_back)) {
            self.is_ready.store(false, Ordering::Relaxed);
            done.told = None;
        }
        let rate = log.drain_rate_bytes_per_s();
        let bytes_max = if is_held { lease.dirty_bytes_max(rate) } else { self.dirty_bytes_max };
        log.bound_dirty_bytes(bytes_max.min(self.dirty_bytes_max));
        if done.told != Some(lease.taken_back) {
            log.commit(log.marks().tail)?;
            note(&*self.files, &self.given_up);
            relies(log, false);
            tell(lease.taken_back);
            done.told = Some(lease.taken_back);
        }
        if is_held && !self.is_ready.load(Ordering::Relaxed) {
            // What waits by now may be more than what may wait from now on.
            log.commit(log.marks().tail)?;
            if note(&*self.files, &self.held) {
                relies(log, true);
                // EDGE leased: the log and memory say what acknowledgements mean.
                self.is_ready.store(true, Ordering::Release);
            }
        }
        Ok(())
    }
}

/// Says in memory itself whether what it acknowledges, or has alone, has to survive the power. Who
/// reads it looks after this process has died, or has told that it gave its lease up.
fn relies(log: &Log, is_so: bool) {
    let said = log.set_word(words::RELIES_ON_POWER, u64::from(is_so));
    said.expect("a log in this process has its words in its own memory");
}

/// Says beside the log what acknowledgements mean; whether it does. One that says less than they do
/// is not enough to begin with, and one that says more does no harm.
fn note(files: &dyn Files, verdict: &Verdict) -> bool {
    let noted = RegionNote::acknowledges(files, verdict);
    noted
        .inspect_err(|error| tracing::warn!(%error, "the log does not know of its memory's class"))
        .is_ok()
}
