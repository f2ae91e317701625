//! Passes over a whole disk in durable memory beside bare copies, in pieces of three sizes.
//!
//! Promise: disk and copy lie in the same kind of memory, as much of it; a round writes and reads
//! everything both ways, in turns, so that what disturbs the machine disturbs both. Every block was
//! written before anything is measured.
//! Never: compares passes of different rounds, or measures a protocol.

use std::fs::File;
use std::hint::black_box;
use std::time::Instant;

use holdfast_bench_common::colours::{OTHER, OWN};
use holdfast_bench_common::place::Place;
use holdfast_bench_common::random::mixed;
use holdfast_bench_common::task::Task;
use holdfast_bench_common::{Failure, output};
use holdfast_blocks::{Vdisk, VdiskSpec};
use holdfast_figures::{Bar, Better, Figure, Panel, Scale};
use holdfast_io::Blocks;
use holdfast_memory::Medium;

use crate::part::Measured;
use crate::raw;

const BLOCK_BYTES: usize = 4096;

/// The sizes of a piece, and their names.
pub(crate) const PIECES: [(usize, &str); 3] = [(4096, "4k"), (64 << 10, "64k"), (1 << 20, "1m")];

/// What is asked of a piece of 1 MiB: at most so many times as long as a copy.
const GOAL: f64 = 1.5;

/// How much is measured.
struct Effort {
    rounds: usize,
    disk_bytes: usize,
}

/// What the passes of all rounds took, in seconds.
#[derive(Default)]
struct Series {
    write: Vec<f64>,
    read: Vec<f64>,
}

/// Both ways with pieces of one size.
#[derive(Default)]
struct Pair {
    disk: Series,
    copy: Series,
}

/// Measures, and compares.
pub(crate) fn measure(task: &Task, _disk: &Place) -> Result<Measured, Failure> {
    Ok(Measured { figures: figures(task)?, panels: panels(), ..Measured::default() })
}

fn figures(task: &Task) -> Result<Vec<Figure>, Failure> {
    let whole = Effort { rounds: 15, disk_bytes: 1 << 30 };
    let effort = task.effort(whole, Effort { rounds: 5, disk_bytes: 256 << 20 });
    let place = Place::in_memory("holdfast-bench-vdisk")?;
    let medium = Medium::Shm { path: place.path().join("disk") };
    let spec = VdiskSpec { size_bytes: effort.disk_bytes as u64, identity: *b"blocks to count." };
    let disk = Vdisk::create(&medium, &spec)?;
    let file = File::create_new(place.path().join("copy"))?;
    let copy = raw::bytes(file, effort.disk_bytes)?;
    let mut figures = Vec::new();
    pass(effort.disk_bytes, 1 << 20, |at, bytes| Ok(disk.write(bytes, at as u64)?))?;
    for (piece_bytes, name) in PIECES {
        let pair = rounds(&effort, &disk, copy, piece_bytes, name)?;
        figures.extend(report(&pair, &effort, name));
        figures.extend(compared(&pair, &format!("vdisk.{name}"), (name == "1m").then_some(GOAL)));
    }
    scatter(&disk, effort.disk_bytes / BLOCK_BYTES)?;
    let scattered = rounds(&effort, &disk, copy, 1 << 20, "scattered 1m")?;
    figures.extend(compared(&scattered, "vdisk.1m.scattered", None));
    Ok(figures)
}

fn rounds(
    effort: &Effort,
    disk: &Vdisk,
    copy: &mut [u8],
    piece_bytes: usize,
    name: &str,
) -> Result<Pair, Failure> {
    let (mut pair, all) = (Pair::default(), effort.disk_bytes);
    for round in 1..=effort.rounds {
        output::progress(&format!("{name}: round {round} of {}", effort.rounds));
        let write = pass(all, piece_bytes, |at, bytes| Ok(disk.write(bytes, at as u64)?))?;
        pair.disk.write.push(write);
        pair.copy.write.push(pass(all, piece_bytes, |at, bytes| {
            copy[at..at + bytes.len()].copy_from_slice(bytes);
            black_box(&mut *copy);
            Ok(())
        })?);
        let read = pass(all, piece_bytes, |at, bytes| Ok(disk.read(bytes, at as u64)?))?;
        pair.disk.read.push(read);
        pair.copy.read.push(pass(all, piece_bytes, |at, bytes| {
            bytes.copy_from_slice(&copy[at..at + bytes.len()]);
            Ok(())
        })?);
    }
    Ok(pair)
}

/// How long it takes to do something with each piece of so many bytes, in seconds.
fn pass(
    all_bytes: usize,
    piece_bytes: usize,
    mut with: impl FnMut(usize, &mut [u8]) -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let mut piece = vec![0x5a; piece_bytes];
    let began = Instant::now();
    for at in (0..all_bytes).step_by(piece_bytes) {
        with(at, black_box(&mut piece))?;
    }
    Ok(began.elapsed().as_secs_f64())
}

/// Writes every block once, in no order, so that none lies beside its neighbour.
fn scatter(disk: &Vdisk, blocks: usize) -> Result<(), Failure> {
    let mut order: Vec<usize> = (0..blocks).collect();
    order.sort_by_key(|block| mixed(*block as u64));
    let write = |block| disk.write(&[1; BLOCK_BYTES], (block * BLOCK_BYTES) as u64);
    Ok(order.into_iter().try_for_each(write)?)
}

/// How fast each way was.
fn report(pair: &Pair, effort: &Effort, name: &str) -> Vec<Figure> {
    let mib = effort.disk_bytes as f64 / f64::from(1 << 20);
    let rate = |id, seconds: &[f64]| {
        let runs = seconds.iter().map(|seconds| mib / seconds).collect();
        Figure::of(id, "MiB/s", Better::Higher, runs)
    };
    let rates = |way: &str, series: &Series| {
        let id = |what| format!("{way}.{name}.{what}_mib_s");
        [rate(id("write"), &series.write), rate(id("read"), &series.read)]
    };
    [rates("vdisk", &pair.disk), rates("memcpy", &pair.copy)].concat()
}

/// How many times as long the disk took: writing, reading, and both together.
fn compared(pair: &Pair, id: &str, goal: Option<f64>) -> Vec<Figure> {
    let Pair { disk, copy } = pair;
    let ratios = |ours: &[f64], peer: &[f64]| ours.iter().zip(peer).map(|(a, b)| a / b).collect();
    let sums = |series: &Series| -> Vec<f64> {
        series.write.iter().zip(&series.read).map(|(write, read)| write + read).collect()
    };
    let over = |what: &str, runs| {
        Figure::of(format!("{id}{what}.memcpy_over"), "ratio", Better::Lower, runs)
    };
    let both = over("", ratios(&sums(disk), &sums(copy)));
    let both = match goal {
        Some(goal) => both.against(goal, "memcpy"),
        None => both.beside("memcpy"),
    };
    let write = over(".write", ratios(&disk.write, &copy.write)).beside("memcpy");
    vec![both, write, over(".read", ratios(&disk.read, &copy.read)).beside("memcpy")]
}

/// What is to be compared by eye.
fn panels() -> Vec<Panel> {
    let bar = |way: &str, name: &str, what: &str, colour| Bar {
        label: format!("{way}, {name}"),
        colour,
        id: format!("{way}.{name}.{what}_mib_s"),
    };
    let panel = |what: &str| {
        let bars = |(_, name): (usize, &str)| {
            [bar("vdisk", name, what, OWN), bar("memcpy", name, what, OTHER)]
        };
        let bars = PIECES.into_iter().flat_map(bars).collect();
        Panel { title: format!("{what}, one thread, MiB/s"), scale: Scale::Linear, bars }
    };
    vec![panel("write"), panel("read")]
}
