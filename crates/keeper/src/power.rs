//! What the keeper knows of the power, and who acknowledges from memory because of it.
//!
//! Promise: what is said of a volume is never more than what its acknowledgements keep: that memory
//! acknowledges is said before the lease is given, and that it does not only after every front end
//! has given it up and brought home what was acknowledged under it.
//! Never: asks a source itself, or waits for one.

pub(crate) mod drill;
mod drills;
mod unserved;

use crate::report::PowerStatus;
use crate::supervisor::front_end::known::OfFront;
use crate::supervisor::life::known::State;
use crate::supervisor::life::watched::Watched;
use drills::{Drills, Log};
use holdfast_config::claims::{PowerSource, Verdict};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Config, PowerConfig, VolumeConfig};
use holdfast_peers::{Lines, Peer};
use holdfast_power::lease::{Lease, now_ms};
use holdfast_power::monitor::{Concerned, Monitor, Report, Shown};
use holdfast_power::source::Source;
use holdfast_power::state::{self, Why};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use unserved::{Place, Unserved, is_acknowledged_in_memory};

/// The power source of this machine, followed.
#[derive(Debug)]
pub(crate) struct Power {
    monitor: Monitor,
    known: Arc<Known>,
    config: PowerConfig,
    /// Held by the one drill that goes on.
    drilling: Mutex<()>,
}

/// What the monitor asks.
#[derive(Debug)]
struct Known {
    /// Volumes that may have a lease.
    holders: Mutex<Vec<Holder>>,
    unserved: Unserved,
    drills: Drills,
    /// What may be said of a source that changes its mind again and again.
    lines: Mutex<Lines>,
}

/// A volume that may have a lease.
#[derive(Clone, Debug)]
struct Holder {
    place: Place,
    ring_bytes: u64,
    volume: Weak<Watched<OfFront>>,
}

impl Power {
    /// Follows what `config` names of this configuration from now on.
    pub(crate) fn start(config: &PowerConfig, whole: &Config) -> Outcome<Arc<Power>> {
        let source = Source::new(config.kind(), config.patience());
        let (holders, lines) = (Mutex::default(), Mutex::default());
        let (unserved, drills) = (Unserved::of(whole), Drills::of(&config.drills));
        let known = Arc::new(Known { holders, unserved, drills, lines });
        let started = Monitor::start(source, config.terms(), config.asked_every(), known.clone());
        let monitor = started.map_err(|error| {
            let remedy = "see whether memory, descriptors or threads ran out; until then every \
                          volume waits for its disk";
            Problem::new(Exit::Failed, "following the power", error, remedy)
        })?;
        tracing::info!(source = config.source_text(), "the power is followed");
        let (config, drilling) = (config.clone(), Mutex::default());
        Ok(Arc::new(Power { monitor, known, config, drilling }))
    }

    /// The power is about to fail: memory acknowledges nothing from now on.
    pub(crate) fn notice(&self) {
        self.monitor.notice();
    }

    /// The front ends of a volume may hold a lease from now on.
    pub(crate) fn concerns(&self, config: &VolumeConfig, volume: &Arc<Watched<OfFront>>) {
        let place = Place::of(config);
        self.known.unserved.has(&place);
        let mut holders = self.known.lock();
        holders.retain(|it| it.volume.strong_count() > 0);
        let (ring_bytes, volume) = (config.memory.size.0, Arc::downgrade(volume));
        holders.push(Holder { place, ring_bytes, volume });
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

    /// How many bytes of a volume may be in memory alone, where its log's device takes that many a
    /// second.
    pub(crate) fn bound_bytes(&self, bytes_per_s: u64) -> u64 {
        let Report { drain_ms, bytes_per_s: bytes_per_s_max, .. } = self.monitor.report();
        let sharers = self.known.sharers();
        let lease = Lease { drain_ms, bytes_per_s_max, sharers, ..Lease::default() };
        lease.dirty_bytes_max(bytes_per_s)
    }

    /// For people, and for programs.
    pub(crate) fn status(&self) -> PowerStatus {
        let report = self.monitor.report();
        let reading = report.told.map(|(reading, _)| reading);
        let has_holders = !self.known.holders().is_empty();
        let fails = matches!(report.state, state::State::OnBattery | state::State::Draining);
        let alone = if fails { self.known.alone(report.taken_back) } else { Vec::new() };
        let is_well = matches!(report.why, None | Some(Why::Settles(_)));
        PowerStatus {
            source: self.config.source_text(),
            state: report.state.word().to_owned(),
            why: report.why.map_or_else(String::new, |why| why.to_string()),
            is_well: is_well || !has_holders,
            since_s: now_ms().saturating_sub(report.since_ms) / 1000,
            hold_up_ms: reading.and_then(|it| it.hold_up_ms),
            drain_ms: report.drain_ms,
            taken_back: report.taken_back,
            trouble: report.trouble,
            alone,
            drill: self.known.drills.text(),
        }
    }
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, Vec<Holder>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of each volume that may have acknowledged from memory.
    fn holders(&self) -> Vec<(Holder, OfFront)> {
        let holders: Vec<_> = self.lock().clone();
        let of = |holder: Holder| {
            let volume = holder.volume.upgrade()?;
            let known = volume.lock();
            // One whose front end has told nothing yet may have what another acknowledged.
            let may_have_one = known.of.armed.is_some() || known.of.verdict.is_none();
            let has_lease = may_have_one && known.state != State::Detached;
            has_lease.then(|| (holder, known.of.clone()))
        };
        holders.into_iter().filter_map(of).collect()
    }

    /// Those that have not given up what was taken back so often.
    fn holding(&self, taken_back: u64) -> Vec<Place> {
        let has_given_up = |it: &OfFront| it.given_up.is_some_and(|times| times >= taken_back);
        let holding = self.holders().into_iter().filter(|(_, it)| !has_given_up(it));
        holding.map(|(holder, _)| holder.place).collect()
    }

    /// What may be in memory alone, for people.
    fn alone(&self, taken_back: u64) -> Vec<String> {
        let holding = self.holding(taken_back).into_iter().map(|it| it.log.display().to_string());
        holding.chain(self.unserved()).collect()
    }

    /// What nobody serves of it.
    fn unserved(&self) -> Vec<String> {
        let live: Vec<Place> = self.holders().into_iter().map(|(it, _)| it.place).collect();
        self.unserved.alone(&live)
    }
}

impl Concerned for Known {
    fn drilled(&self) -> Option<Shown> {
        let log =
            |(it, _): (Holder, OfFront)| Log { path: it.place.log, ring_bytes: it.ring_bytes };
        let logs: Vec<Log> = self.holders().into_iter().map(log).collect();
        self.drills.shown(&logs)
    }

    fn is_drained(&self, taken_back: u64) -> bool {
        self.alone(taken_back).is_empty()
    }

    fn sharers(&self) -> u64 {
        self.holders().len().max(1) as u64
    }

    fn changed(&self, report: &Report) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left_out) = lines.left_out(Instant::now()) {
            tracing::warn!("{left_out} changes of the power were not told here");
        }
        if !lines.may_say(Peer::Unknown, Instant::now()) {
            return;
        }
        let why = report.why.map_or_else(String::new, |why| why.to_string());
        let trouble = report.trouble.as_ref().map_or(String::new(), |it| format!(" ({it})"));
        let (state, why) = (report.state.word(), why + &trouble);
        match report.state {
            state::State::Armed => tracing::info!(
                drain_ms = report.drain_ms,
                "the power is armed: memory acknowledges what has to survive it"
            ),
            state::State::Charging => tracing::info!(state, why, "the power: volumes wait"),
            _ => tracing::warn!(state, why, "the power: volumes wait for their disks"),
        }
    }
}

/// What acknowledgements of a volume may have meant last, of which no front end tells: what the log
/// says of its memory, which changes before memory acknowledges, and after all that it acknowledged
/// is on the log's device. A log that does not answer has not said that, and neither has one that
/// is not there, while there is something in memory.
pub(crate) fn source_by_log(volume: &VolumeConfig, power: PowerSource) -> PowerSource {
    match power {
        PowerSource::None => PowerSource::None,
        _ => match is_acknowledged_in_memory(&Place::of(volume)) {
            true => PowerSource::Armed,
            false => PowerSource::Unarmed,
        },
    }
}

/// How many bytes a drill is to bring to a device of that speed.
fn bytes_of_drill(lease: &Lease, bytes_per_s: u64, ring_bytes: u64) -> u64 {
    match bytes_per_s {
        0 => ring_bytes,
        rate => lease.dirty_bytes_max(rate).min(ring_bytes),
    }
}
