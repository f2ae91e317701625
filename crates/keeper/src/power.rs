//! What the keeper knows of the power, and who acknowledges from memory because of it.
//!
//! Promise: what is said of a volume is never more than what its acknowledgements keep: that memory
//! acknowledges is said before the lease is given, and that it does not only after every front end
//! has given it up and brought home what was acknowledged under it.
//! Never: asks a source itself, or waits for one.

pub(crate) mod drill;
mod drills;

use crate::report::PowerStatus;
use crate::supervisor::front_end::known::OfFront;
use crate::supervisor::life::known::State;
use crate::supervisor::life::watched::Watched;
use drills::Drills;
use holdfast_config::PowerConfig;
use holdfast_config::claims::{PowerSource, Verdict};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_power::lease::{Lease, now_ms};
use holdfast_power::monitor::{Concerned, Monitor, Report};
use holdfast_power::source::Source;
use holdfast_power::state;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The power source of this machine, followed.
#[derive(Debug)]
pub(crate) struct Power {
    monitor: Monitor,
    known: Arc<Known>,
    config: PowerConfig,
}

/// What the monitor asks.
#[derive(Debug)]
struct Known {
    /// Volumes that may have a lease.
    holders: Mutex<Vec<Weak<Watched<OfFront>>>>,
    drills: Drills,
}

impl Power {
    /// Follows what the configuration names from now on.
    pub(crate) fn start(config: &PowerConfig) -> Outcome<Arc<Power>> {
        let source = Source::new(config.kind(), config.asked_every());
        let known = Known { holders: Mutex::default(), drills: Drills::of(&config.drills) };
        let known = Arc::new(known);
        let started = Monitor::start(source, config.terms(), config.asked_every(), known.clone());
        let monitor = started.map_err(|error| {
            let remedy = "see whether memory, descriptors or threads ran out; until then every \
                          volume waits for its disk";
            Problem::new(Exit::Failed, "following the power", error, remedy)
        })?;
        tracing::info!(source = config.source_text(), "the power is followed");
        Ok(Arc::new(Power { monitor, known, config: config.clone() }))
    }

    /// The front ends of a volume may hold a lease from now on.
    pub(crate) fn concerns(&self, volume: &Arc<Watched<OfFront>>) {
        let mut holders = self.known.lock();
        holders.retain(|it| it.strong_count() > 0);
        holders.push(Arc::downgrade(volume));
    }

    /// Where front ends read the lease.
    pub(crate) fn lease(&self) -> BorrowedFd<'_> {
        self.monitor.page().as_fd()
    }

    /// What acknowledgements of a volume may mean now, of which this is known.
    pub(crate) fn source_of(&self, volume: &OfFront) -> PowerSource {
        let report = self.monitor.report();
        let is_given_up = volume.given_up.is_some_and(|it| it >= report.taken_back);
        match report.state == state::State::Armed || !is_given_up {
            true => PowerSource::Armed,
            false => PowerSource::Unarmed,
        }
    }

    /// What they mean.
    pub(crate) fn verdict_of(&self, volume: &OfFront) -> Option<Verdict> {
        match self.source_of(volume) {
            PowerSource::Armed => volume.armed.clone(),
            _ => None,
        }
    }

    /// For people, and for programs.
    pub(crate) fn status(&self) -> PowerStatus {
        let report = self.monitor.report();
        let reading = report.told.map(|(reading, _)| reading);
        PowerStatus {
            source: self.config.source_text(),
            state: report.state.word().to_owned(),
            why: report.why.clone(),
            since_s: now_ms().saturating_sub(report.since_ms) / 1000,
            hold_up_ms: reading.and_then(|it| it.hold_up_ms),
            drain_ms: report.drain_ms,
            taken_back: report.taken_back,
            trouble: report.trouble,
            drill: self.known.drills.newest().map(|drill| drill.text()),
        }
    }
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Watched<OfFront>>>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of each volume that may have acknowledged from memory.
    fn holders(&self) -> Vec<OfFront> {
        let holders: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        let of = |it: Arc<Watched<OfFront>>| {
            let known = it.lock();
            let has_lease = known.of.armed.is_some() && known.state != State::Detached;
            has_lease.then(|| known.of.clone())
        };
        holders.into_iter().filter_map(of).collect()
    }
}

impl Concerned for Known {
    fn drilled_ms_ago(&self) -> Option<u64> {
        self.drills.passed_ms_ago()
    }

    fn is_drained(&self, taken_back: u64) -> bool {
        let is_drained = |it: &OfFront| it.given_up.is_some_and(|times| times >= taken_back);
        self.holders().iter().all(is_drained)
    }

    fn sharers(&self) -> u64 {
        self.holders().len().max(1) as u64
    }

    fn changed(&self, report: &Report) {
        let (state, why) = (report.state.word(), report.why.as_str());
        match report.state {
            state::State::Armed => tracing::info!(
                drain_ms = report.drain_ms,
                "the power is armed: memory acknowledges what has to survive it"
            ),
            state::State::Charging => tracing::info!(state, why, "the power"),
            _ => tracing::warn!(state, why, "the power: volumes wait for their disks"),
        }
    }
}

/// How many bytes a drill is to bring to a device of that speed.
fn bytes_of_drill(lease: &Lease, bytes_per_s: u64, ring_bytes: u64) -> u64 {
    match bytes_per_s {
        0 => ring_bytes,
        rate => lease.dirty_bytes_max(rate).min(ring_bytes),
    }
}
