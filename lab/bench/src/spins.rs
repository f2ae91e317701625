//! How long who waits at the queue should look before it sleeps.
//!
//! Promise: each number of looks is tried in each place once a round, by both sides alike; what it
//! costs is told beside what it brings: processor time of both sides together.
//! Never: pins anybody to one core: on which of two they run is the kernel's choice, as it is in
//! use.

use std::error::Error;
use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use holdfast_bench_common::output;
use holdfast_figures::{Bar, Better, Figure, Panel, Scale, percentile};
use holdfast_memory::SessionMemory;
use holdfast_memory::queue::Request;
use rustix::time::{ClockId, clock_gettime};

use crate::rounds::Effort;
use crate::ways::{self, Echo, ask_queue};

/// The looks that are tried. One takes about 20 ns: `queue.look_ns`.
const LOOKS: [u32; 8] = [0, 25, 50, 100, 250, 500, 1_000, 2_500];

/// Where everybody runs.
const CORES: [usize; 2] = [0, 1];

/// Requests of each client before any is counted.
const WARM_UP: usize = 200;

/// Processor time is told for so many requests.
const REQUESTS: f64 = 100_000.0;

/// Who is there beside the first client.
struct Place {
    /// Name in ids.
    id: &'static str,
    /// Name for people.
    title: &'static str,
    /// Each with a session of its own, and a process that answers it.
    clients: usize,
    /// A core on which a stranger never rests.
    busy: Option<usize>,
}

const PLACES: [Place; 3] = [
    Place { id: "alone", title: "one client, two cores", clients: 1, busy: None },
    Place {
        id: "busy",
        title: "one client, one of two cores busy",
        clients: 1,
        busy: Some(CORES[1]),
    },
    Place { id: "eight", title: "eight clients, two cores", clients: 8, busy: None },
];

/// What a number of looks took in a place, a value a round.
#[derive(Default)]
struct Series {
    p50_ns: Vec<f64>,
    cpu_s: Vec<f64>,
}

/// One round of one number of looks.
struct Sample {
    p50_ns: f64,
    cpu_s: f64,
}

/// Measures all looks in all places.
pub(crate) fn measure(effort: &Effort) -> Result<Vec<Figure>, Box<dyn Error>> {
    ways::keep_on(&CORES)?;
    let mut all: [[Series; LOOKS.len()]; PLACES.len()] = Default::default();
    for round in 1..=effort.rounds {
        output::progress(&format!("round {round} of {}", effort.rounds));
        for (series, place) in all.iter_mut().zip(&PLACES) {
            let _stranger = place.busy.map(Echo::stranger).transpose()?;
            for (series, looks) in series.iter_mut().zip(LOOKS) {
                let sample = sample(place, looks, effort.time / 2)?;
                series.p50_ns.push(sample.p50_ns);
                series.cpu_s.push(sample.cpu_s);
            }
        }
    }
    let places = all.iter().zip(&PLACES);
    Ok(places.flat_map(|(series, place)| figures(series, place)).collect())
}

fn figures(series: &[Series], place: &Place) -> Vec<Figure> {
    let each = series.iter().zip(LOOKS).flat_map(|(series, looks)| {
        let figure = |what: &str, unit: &str, runs: &Vec<f64>| {
            Figure::of(id(looks, place, what), unit, Better::Lower, runs.clone())
        };
        [figure("p50_ns", "ns", &series.p50_ns), figure("cpu_s", "s/100k requests", &series.cpu_s)]
    });
    each.collect()
}

fn id(looks: u32, place: &Place, what: &str) -> String {
    format!("queue.spins.{looks}.{}.{what}", place.id)
}

/// What is to be compared by eye.
pub(crate) fn panels() -> Vec<Panel> {
    let panel = |place: &Place, what: &str, title: &str| {
        let bar = |looks: u32| Bar {
            label: format!("{looks} looks"),
            colour: "#1f7a4d",
            id: id(looks, place, what),
        };
        let title = format!("{}: {title}", place.title);
        Panel { title, scale: Scale::Linear, bars: LOOKS.into_iter().map(bar).collect() }
    };
    let both = |place| {
        [
            panel(place, "p50_ns", "round trip, median, ns"),
            panel(place, "cpu_s", "processor seconds for 100,000 requests"),
        ]
    };
    PLACES.iter().flat_map(both).collect()
}

/// Lets the clients of a place ask for a while, and adds up what both sides took.
fn sample(place: &Place, looks: u32, time: Duration) -> Result<Sample, Box<dyn Error>> {
    let clients: Vec<_> =
        (0..place.clients).map(|_| Client::open(looks)).collect::<Result<_, _>>()?;
    clients.iter().try_for_each(|client| client.ask_often(WARM_UP))?;
    let cpu_before = cpu_s(&clients)?;
    let mut trips = thread::scope(|scope| {
        let asking = clients.iter().map(|client| scope.spawn(|| client.ask_for(time)));
        // All are started before the first is waited for.
        let asking: Vec<_> = asking.collect();
        let mut all = Vec::new();
        for client in asking {
            all.extend(client.join().map_err(|_| "a client panicked")??);
        }
        Ok::<_, Box<dyn Error>>(all)
    })?;
    let cpu_s = (cpu_s(&clients)? - cpu_before) * REQUESTS / trips.len() as f64;
    trips.sort_unstable();
    Ok(Sample { p50_ns: percentile(&trips, 50) as f64, cpu_s })
}

/// A session, and the process that answers it.
struct Client {
    session: SessionMemory,
    echo: Echo,
    looks: u32,
}

impl Client {
    fn open(looks: u32) -> Result<Client, Box<dyn Error>> {
        let (session, file) = SessionMemory::create_sealed(4096)?;
        Ok(Client { session, echo: Echo::unpinned(looks, file)?, looks })
    }

    fn ask(&self) -> Result<(), String> {
        let asked = ask_queue(self.session.queue(), self.looks, Request::default());
        asked.map(drop).map_err(|error| error.to_string())
    }

    fn ask_often(&self, times: usize) -> Result<(), String> {
        (0..times).try_for_each(|_| self.ask())
    }

    /// The times of the round trips that were made meanwhile, in nanoseconds.
    fn ask_for(&self, time: Duration) -> Result<Vec<u64>, String> {
        let (began, mut trips) = (Instant::now(), Vec::new());
        while began.elapsed() < time {
            let sent = Instant::now();
            self.ask()?;
            trips.push(sent.elapsed().as_nanos() as u64);
        }
        Ok(trips)
    }
}

/// Processor time of this process and of those that answer it, in seconds.
fn cpu_s(clients: &[Client]) -> io::Result<f64> {
    let own = clock_gettime(ClockId::ProcessCPUTime);
    let own = own.tv_sec as f64 + own.tv_nsec as f64 / 1e9;
    clients.iter().try_fold(own, |sum, client| Ok(sum + answering_s(client.echo.pid())?))
}

/// Processor time of a process that has one thread, in seconds.
fn answering_s(pid: u32) -> io::Result<f64> {
    let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let spent_ns = schedstat.split(' ').next().and_then(|first| first.parse::<u64>().ok());
    let spent_ns = spent_ns.ok_or_else(|| io::Error::other("the kernel counts no run time"))?;
    Ok(spent_ns as f64 / 1e9)
}
