//! Transactions of several clients at a time: how many in a second, and what each costs.
//!
//! Promise: each run has a copy of one loaded store; everything acknowledged is found again after
//! the clock has stopped; a durable run without enough flushes is refused. What the device was
//! given is counted until the store is closed and nothing is left to write.
//! Never: lets a client have two transactions under way.

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::flushes::Device;
use holdfast_bench_common::place::Place;
use holdfast_figures::percentile;

use crate::Failure;
use crate::drive::{self, Hand};
use crate::effort::{CACHE_BYTES, Effort};
use crate::gauge::{Gauge, Synced};
use crate::peers::{Durability, Kind, Terms};
use crate::tpcb::{self, Bank};

/// A store with a bank in it, closed.
pub(crate) struct Loaded {
    pub(crate) kind: &'static Kind,
    pub(crate) place: Place,
    pub(crate) bank: Bank,
}

impl Loaded {
    pub(crate) fn new(kind: &'static Kind, bank: Bank, whole: &Place) -> Result<Loaded, Failure> {
        let place = whole.folder(&format!("loaded-{}-{}", kind.name, bank.branches))?;
        let peer = (kind.open)(place.path(), &terms(Durability::Synced))?;
        tpcb::load(&*peer, bank)?;
        peer.close()?;
        Ok(Loaded { kind, place, bank })
    }
}

/// Where a run takes place, and what is asked of it.
pub(crate) struct Terrain<'a> {
    pub(crate) effort: &'a Effort,
    pub(crate) whole: &'a Place,
    /// The device below, if its flushes can be counted.
    pub(crate) device: Option<&'a Device>,
    pub(crate) durability: Durability,
}

/// What a run came to.
pub(crate) struct Outcome {
    pub(crate) per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) cpu_us: f64,
    /// Nothing if the store does not say.
    pub(crate) log_bytes: Option<f64>,
    /// Nothing if nothing was to be durable.
    pub(crate) synced: Option<Synced>,
}

/// What a store is told that is measured while it is whole.
pub(crate) fn terms(durability: Durability) -> Terms {
    Terms { durability, cache_bytes: CACHE_BYTES, put_off: false, keeps_past: true }
}

/// Measures one store with a client a branch.
pub(crate) fn measure(loaded: &Loaded, terrain: &Terrain<'_>) -> Result<Outcome, Failure> {
    let Terrain { effort, whole, device, durability } = *terrain;
    let place = whole.copy("rates", loaded.place.path())?;
    let peer = (loaded.kind.open)(place.path(), &terms(durability))?;
    let mut hands = Hand::all(loaded.bank, loaded.bank.branches);
    drive::all(&*peer, &mut hands, effort.warm_up)?;
    drive::take_times_ns(&mut hands);
    place.settle()?;

    let is_synced = durability == Durability::Synced;
    let gauge = is_synced.then(|| Gauge::begin(&place, device, effort)).transpose()?;
    let logged = peer.log_bytes();
    let clock = Clock::start();
    drive::all(&*peer, &mut hands, effort.timed)?;
    let (wall_s, cpu_us) = (clock.wall_s(), clock.process_us());
    let logged = peer.log_bytes().zip(logged).map(|(after, before)| after - before);
    let times = drive::take_times_ns(&mut hands);
    let count = times.len() as u64;
    let gauge = gauge.map(|gauge| gauge.stop()).transpose()?;

    let done = hands.iter().map(Hand::done).sum();
    tpcb::check(&*peer, loaded.bank, done..=done)?;
    peer.close()?;
    let per_s = count as f64 / wall_s;
    let synced =
        gauge.map(|it| it.end(&place, (count, loaded.bank.branches), per_s)).transpose()?;
    Ok(Outcome {
        per_s,
        p50_us: percentile(&times, 50) as f64 / 1000.0,
        p99_us: percentile(&times, 99) as f64 / 1000.0,
        cpu_us: cpu_us / count as f64,
        log_bytes: logged.map(|bytes| bytes as f64 / count as f64),
        synced,
    })
}
