//! Network block devices over a unix socket: a disk in durable memory beside `nbdkit memory`.
//!
//! Promise: the same client asks both for the same, one after the other within each round; every
//! block of both was written before anything is measured.
//! Never: judges by a client of its own: QEMU's asks.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_bench_common::colours::{OTHER, OWN};
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::ratios::divided;
use holdfast_bench_common::task::Task;
use holdfast_bench_common::{Failure, output};
use holdfast_blocks::{Vdisk, VdiskSpec};
use holdfast_figures::{Bar, Better, Figure, Panel, Scale};
use holdfast_front::nbd::{Export, Listener, NbdConfig, serve};
use holdfast_memory::Medium;

use crate::part::Measured;

const SIZE_MIB: usize = 256;

const OURS: &str = "holdfast";
const PEER: &str = "nbdkit_memory";

/// The sizes of a request: its bytes, name, and how many of them a whole run and a quick one has.
const SIZES: [(usize, &str, [usize; 2]); 3] = [
    (4096, "4k", [40_000, 8_000]),
    (64 << 10, "64k", [20_000, 3_000]),
    (1 << 20, "1m", [2_000, 300]),
];

/// Requests that are under way at a time.
const DEPTHS: [usize; 3] = [1, 4, 16];

const DIRECTIONS: [&str; 2] = ["read", "write"];

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

const CONFIG: NbdConfig =
    NbdConfig { connections_max: 16, negotiation_patience: PATIENCE, tls: None };

/// One way to ask.
#[derive(Clone, Copy)]
struct Case {
    direction: &'static str,
    bytes: usize,
    size: &'static str,
    requests: usize,
    depth: usize,
}

/// Measures both servers.
pub(crate) fn measure(task: &Task, _disk: &Place) -> Result<Measured, Failure> {
    let memory = Place::in_memory("holdfast-bench-nbd")?;
    let ledger = with_servers(memory.path(), |servers| rounds(task, servers))?;
    let mut figures = ledger.figures();
    figures.extend(cases(task).iter().filter_map(|case| over(&ledger, case)));
    figures.extend(worst(&figures));
    Ok(Measured { figures, panels: panels(task), ..Measured::default() })
}

fn cases(task: &Task) -> Vec<Case> {
    let mut all = Vec::new();
    for direction in DIRECTIONS {
        for (bytes, size, [whole, quick]) in SIZES {
            let requests = task.effort(whole, quick);
            all.extend(DEPTHS.map(|depth| Case { direction, bytes, size, requests, depth }));
        }
    }
    all
}

impl Case {
    fn name(&self) -> String {
        format!("nbd.{}.{}.d{}", self.direction, self.size, self.depth)
    }

    fn id(&self, server: &str) -> String {
        format!("{}.{server}.requests_per_s", self.name())
    }
}

fn rounds(task: &Task, servers: [(&str, &Path); 2]) -> Result<Ledger, Failure> {
    for (_, socket) in servers {
        ask(socket, "write", 1 << 20, SIZE_MIB, 1)?;
    }
    let (mut ledger, rounds) = (Ledger::default(), task.effort(9, 3));
    for round in 1..=rounds {
        output::progress(&format!("nbd: round {round} of {rounds}"));
        for case in cases(task) {
            for (server, socket) in servers {
                let took_s = ask(socket, case.direction, case.bytes, case.requests, case.depth)?;
                ledger.higher(case.id(server), "requests/s", case.requests as f64 / took_s);
            }
        }
    }
    Ok(ledger)
}

/// Has QEMU ask, and returns how many seconds it took.
fn ask(
    socket: &Path,
    direction: &str,
    bytes: usize,
    requests: usize,
    depth: usize,
) -> Result<f64, Failure> {
    let mut client = Command::new("qemu-img");
    client.args(["bench", "-f", "raw", "-c", &requests.to_string(), "-s", &bytes.to_string()]);
    client.args(["-d", &depth.to_string()]);
    if direction == "write" {
        client.args(["-w", "--pattern=90"]);
    }
    client.arg(format!("nbd+unix:///?socket={}", socket.display()));
    let done = client.output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    let error = || format!("qemu-img bench: {said}{}", String::from_utf8_lossy(&done.stderr));
    took_s(&said).ok_or_else(|| error().into())
}

/// The seconds that QEMU tells of.
fn took_s(said: &str) -> Option<f64> {
    let took = said.lines().find_map(|line| line.strip_prefix("Run completed in "))?;
    took.strip_suffix(" seconds.")?.parse().ok()
}

/// Runs `with` while both servers are there.
fn with_servers<R>(
    folder: &Path,
    with: impl FnOnce([(&str, &Path); 2]) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let medium = Medium::Shm { path: folder.join("region") };
    let size_bytes = (SIZE_MIB << 20) as u64;
    let disk = Vdisk::create(&medium, &VdiskSpec { size_bytes, identity: *b"blocks to be had" })?;
    let exports = [Export { name: "", blocks: &disk, read_only: false }];
    let (ours, peers) = (folder.join("ours"), folder.join("peers"));
    let listener = Listener::new(UnixListener::bind(&ours)?)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let served = scope.spawn(|| serve(vec![listener], Vec::new(), &exports, &CONFIG, &stop));
        let result = Peer::start(&peers).and_then(|_peer| with([(OURS, &ours), (PEER, &peers)]));
        stop.store(true, Ordering::Relaxed);
        served.join().map_err(|_| "the server died")??;
        result
    })
}

/// nbdkit with its disk in memory, until it is dropped.
struct Peer(Child);

impl Peer {
    fn start(socket: &Path) -> Result<Peer, Failure> {
        let ready = socket.with_extension("ready");
        let mut server = Command::new("nbdkit");
        server.args(["--foreground", "--unix"]).arg(socket).arg("--pidfile").arg(&ready);
        server.args(["memory", &format!("{SIZE_MIB}M")]).stdin(Stdio::null());
        let peer = Peer(server.spawn().map_err(|error| format!("nbdkit: {error}"))?);
        let began = Instant::now();
        while !ready.exists() {
            if began.elapsed() > PATIENCE {
                return Err("nbdkit does not listen".into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(peer)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // If it is gone already there is nothing to kill.
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// Our rate over the peer's.
fn over(ledger: &Ledger, case: &Case) -> Option<Figure> {
    let runs = divided(ledger.runs(&case.id(OURS)), ledger.runs(&case.id(PEER)))?;
    let id = format!("{}.over_nbdkit_memory", case.name());
    Some(Figure::of(id, "ratio", Better::Higher, runs).beside("nbdkit memory"))
}

/// The ratio with the least median.
fn worst(figures: &[Figure]) -> Option<Figure> {
    let ratios = figures.iter().filter(|figure| figure.unit == "ratio");
    let worst = ratios.min_by(|one, other| one.value.total_cmp(&other.value))?;
    let peer = format!("nbdkit memory, {}", worst.id);
    let runs = worst.runs.clone();
    Some(Figure::of("nbd.over_nbdkit_memory", "ratio", Better::Higher, runs).against(1.0, &peer))
}

fn panels(task: &Task) -> Vec<Panel> {
    let panel = |direction: &str, size: &str| {
        let of_panel = |case: &Case| case.direction == direction && case.size == size;
        let bars = |case: Case| {
            [(OURS, OWN), (PEER, OTHER)].map(|(server, colour)| Bar {
                label: format!("{}, {} at a time", server.replace('_', " "), case.depth),
                colour,
                id: case.id(server),
            })
        };
        let bars = cases(task).into_iter().filter(of_panel).flat_map(bars).collect();
        let title = format!("NBD, {direction} of {size}, requests/s");
        Panel { title, scale: Scale::Linear, bars }
    };
    let panels = |direction| SIZES.map(|(_, size, _)| panel(direction, size));
    DIRECTIONS.into_iter().flat_map(panels).collect()
}

#[cfg(test)]
mod tests;
