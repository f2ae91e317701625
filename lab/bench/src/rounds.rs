//! Round trips: every way, on one core and on two, in turns.
//!
//! Promise: each round measures every way once, in the same order, so that what disturbs the
//! machine disturbs all.
//! Never: averages: a round gives its median and its 99th percentile.

use std::error::Error;
use std::time::{Duration, Instant};

use holdfast_bench_common::output;
use holdfast_figures::{Bar, Better, Figure, Panel, Scale, percentile};
use holdfast_memory::SessionMemory;

use crate::ways::{self, Echo, Way};

/// Where the asking process runs.
pub(crate) const CORE: usize = 0;

/// Where the other runs, and how it is called.
pub(crate) const PLACES: [(usize, &str); 2] = [(CORE, "one_core"), (1, "two_cores")];

/// Where the bars of the plot begin, in nanoseconds.
const LEAST_NS: f64 = 10.0;

/// Round trips before any is counted.
const WARM_UP: usize = 20;

/// How much is measured.
pub(crate) struct Effort {
    /// Times that everything is repeated.
    pub(crate) rounds: usize,
    /// Round trips of each way at most,
    trips: usize,
    /// and for how long at most: two processes that spin on one core wait for their time slices.
    pub(crate) time: Duration,
}

impl Effort {
    pub(crate) fn new(quick: bool) -> Effort {
        match quick {
            true => Effort { rounds: 3, trips: 5_000, time: Duration::from_millis(300) },
            false => Effort { rounds: 15, trips: 50_000, time: Duration::from_secs(1) },
        }
    }
}

/// What one way took in one place, a value a round, in nanoseconds.
#[derive(Default)]
struct Series {
    p50: Vec<f64>,
    p99: Vec<f64>,
}

/// Measures, and compares.
pub(crate) fn measure(effort: &Effort) -> Result<Vec<Figure>, Box<dyn Error>> {
    if std::thread::available_parallelism()?.get() < 2 {
        return Err("two cores are needed to compare one with two".into());
    }
    let mut all: [[Series; ways::ALL.len()]; PLACES.len()] = Default::default();
    for round in 1..=effort.rounds {
        output::progress(&format!("round {round} of {}", effort.rounds));
        for (place, (core, _)) in all.iter_mut().zip(PLACES) {
            for (series, (way, name)) in place.iter_mut().zip(ways::ALL) {
                let trips = trips(way, name, core, effort)?;
                series.p50.push(percentile(&trips, 50) as f64);
                series.p99.push(percentile(&trips, 99) as f64);
            }
        }
    }
    let mut figures = report(&all);
    figures.push(look_ns(effort)?);
    Ok(figures)
}

/// How long one look at an empty queue takes: what a number of spins is worth.
fn look_ns(effort: &Effort) -> Result<Figure, Box<dyn Error>> {
    const LOOKS: u32 = 100_000;
    let (session, _file) = SessionMemory::create_sealed(4096)?;
    let mut runs = Vec::new();
    for _ in 0..effort.rounds {
        let began = Instant::now();
        let _nothing = session.queue().wait_for_work(LOOKS, Duration::ZERO);
        runs.push(began.elapsed().as_nanos() as f64 / f64::from(LOOKS));
    }
    Ok(Figure::of("queue.look_ns", "ns", Better::Lower, runs))
}

/// The sorted times of round trips, in nanoseconds.
fn trips(way: Way, name: &str, core: usize, effort: &Effort) -> Result<Vec<u64>, Box<dyn Error>> {
    ways::pin(CORE)?;
    let (mut asker, ends) = way.open()?;
    let _echo = Echo::start(name, core, ends)?;
    for _ in 0..WARM_UP {
        asker.ask()?;
    }
    let mut times = Vec::with_capacity(effort.trips);
    let began = Instant::now();
    while times.len() < effort.trips && began.elapsed() < effort.time {
        let sent = Instant::now();
        asker.ask()?;
        times.push(sent.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    Ok(times)
}

fn report(all: &[[Series; ways::ALL.len()]; PLACES.len()]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let two_cores = |way: Way| {
        let at = ways::ALL.iter().position(|(other, _)| *other == way);
        at.map_or(&[][..], |at| &all[1][at].p50)
    };
    // Round by round, as the rounds are what shares its disturbances.
    let ratio = |ours, peer| two_cores(ours).iter().zip(two_cores(peer)).map(|(a, b)| a / b);
    let over = |id, runs| Figure::of(id, "ratio", Better::Lower, runs);
    let flag = ratio(Way::QueueSpin, Way::Flag).collect();
    let futex = ratio(Way::QueueSleep, Way::Futex).collect();
    figures.push(over("queue.roundtrip.spin.over_flag", flag).against(2.0, "flag.roundtrip"));
    figures.push(over("queue.roundtrip.sleep.over_futex", futex).beside("futex.roundtrip"));
    for (place, (_, place_name)) in all.iter().zip(PLACES) {
        for (series, (_, name)) in place.iter().zip(ways::ALL) {
            for (what, runs) in [("p50_ns", &series.p50), ("p99_ns", &series.p99)] {
                let id = format!("{name}.{place_name}.{what}");
                figures.push(Figure::of(id, "ns", Better::Lower, runs.clone()));
            }
        }
    }
    figures
}

/// What is to be compared by eye: the median round trip of each way.
pub(crate) fn panels() -> Vec<Panel> {
    let panel = |(_, place): (usize, &str)| {
        let bar = |(_, name): &(Way, &str)| Bar {
            label: name.replace(".roundtrip", ""),
            colour: if name.starts_with("queue") { "#1f7a4d" } else { "#8a8f98" },
            id: format!("{name}.{place}.p50_ns"),
        };
        let title = format!("round trip, {}, median, ns", place.replace('_', " "));
        let bars = ways::ALL.iter().map(bar).collect();
        Panel { title, scale: Scale::Logarithmic(LEAST_NS), bars }
    };
    PLACES.into_iter().map(panel).collect()
}
