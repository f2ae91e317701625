//! The table of the DM/6000 paper's section 5: 64 MiB read with blocks of three sizes.
//!
//! Promise: every way reads the same bytes into the same buffer, in turns within a round; devices
//! are read past the page cache, as the paper's raw devices were.
//! Never: needs a loop device: without one the figures say so.

use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use holdfast_bench_common::colours::{LIMIT, OTHER, OWN};
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::ratios::divided;
use holdfast_bench_common::task::Task;
use holdfast_bench_common::{Failure, output};
use holdfast_blocks::{Vdisk, VdiskSpec};
use holdfast_figures::{Bar, Better, Figure, Panel, Scale};
use holdfast_io::Blocks;
use holdfast_memory::Medium;
use rustix::fs::OFlags;

use crate::part::Measured;
use crate::raw;
use crate::vdisk::PIECES;

const BYTES: usize = 64 << 20;

/// Where a transfer past the page cache may begin.
const ALIGNMENT: usize = 4096;

/// The paper's seconds with a hard disk over those with its VDISK, by size.
const PAPER: [f64; 3] = [25.3 / 13.4, 26.2 / 1.6, 26.6 / 1.0];

const VDISK: &str = "vdisk";
const DISK: &str = "disk";

/// Fills a buffer with what is at an offset.
type Read<'a> = Box<dyn FnMut(&mut [u8], usize) -> Result<(), Failure> + 'a>;

/// A way to 64 MiB.
struct Way<'a> {
    name: &'static str,
    read: Read<'a>,
}

/// Measures all ways.
pub(crate) fn measure(task: &Task, disk: &Place) -> Result<Measured, Failure> {
    let memory = Place::in_memory("holdfast-bench-table")?;
    let tmpfs = filled(memory.path())?;
    let (device, note) = match LoopDevice::over(&tmpfs) {
        Ok(device) => (Some(device), "a loop device over memory".into()),
        Err(why) => (None, format!("NO LOOP DEVICE: {why}")),
    };
    let vdisk = vdisk(memory.path())?;
    let copy = raw::bytes(File::create_new(memory.path().join("copy"))?, BYTES)?;
    copy.fill(0x5a);
    let mut ways = vec![
        Way { name: VDISK, read: Box::new(|into, at| Ok(vdisk.read(into, at as u64)?)) },
        Way { name: "memcpy", read: Box::new(|into, at| copied(&*copy, into, at)) },
        Way { name: "tmpfs", read: from(File::open(&tmpfs)?) },
    ];
    if let Some(device) = &device {
        ways.push(Way { name: "loop", read: from(direct(&device.path)?) });
    }
    ways.push(Way { name: DISK, read: from(direct(&filled(disk.path())?)?) });
    let names: Vec<&str> = ways.iter().map(|way| way.name).collect();
    let ledger = rounds(&mut ways, task.effort(9, 3))?;
    let figures = ledger.figures().into_iter().chain(beside_paper(&ledger)).collect();
    Ok(Measured { figures, panels: panels(&names), notes: vec![note], ..Measured::default() })
}

fn rounds(ways: &mut [Way<'_>], rounds: usize) -> Result<Ledger, Failure> {
    let mut ledger = Ledger::default();
    for round in 1..=rounds {
        output::progress(&format!("64 MiB: round {round} of {rounds}"));
        for (piece_bytes, size) in PIECES {
            for way in &mut *ways {
                ledger.lower(id(size, way.name), "ms", pass_ms(way, piece_bytes)?);
            }
        }
    }
    Ok(ledger)
}

/// Milliseconds for all of it.
fn pass_ms(way: &mut Way<'_>, piece_bytes: usize) -> Result<f64, Failure> {
    let mut memory = vec![0; piece_bytes + ALIGNMENT];
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    let into = &mut memory[start..][..piece_bytes];
    let began = Instant::now();
    for at in (0..BYTES).step_by(piece_bytes) {
        (way.read)(black_box(into), at)?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// How many times as long as the disk in memory the real one took, here and in the paper.
fn beside_paper(ledger: &Ledger) -> Vec<Figure> {
    let over = |((_, size), paper): ((usize, &str), f64)| {
        let runs = divided(ledger.runs(&id(size, DISK)), ledger.runs(&id(size, VDISK)))?;
        let figure =
            Figure::of(format!("table.{size}.disk_over_vdisk"), "ratio", Better::Higher, runs);
        Some(figure.beside(&format!("the paper: {paper:.1}")))
    };
    PIECES.into_iter().zip(PAPER).filter_map(over).collect()
}

fn id(size: &str, way: &str) -> String {
    format!("table.{size}.{way}_ms")
}

fn panels(names: &[&str]) -> Vec<Panel> {
    let panel = |(_, size): (usize, &str)| {
        let bar = |name: &&str| {
            let colour = match *name {
                VDISK => OWN,
                "memcpy" => LIMIT,
                _ => OTHER,
            };
            Bar { label: (*name).into(), colour, id: id(size, name) }
        };
        let title = format!("64 MiB read in blocks of {size}, ms");
        let bars = names.iter().map(bar).collect();
        Panel { title, scale: Scale::Logarithmic(1.0), bars }
    };
    PIECES.into_iter().map(panel).collect()
}

/// A disk in durable memory, every block of it written.
fn vdisk(folder: &Path) -> Result<Vdisk, Failure> {
    let medium = Medium::Shm { path: folder.join("region") };
    let spec = VdiskSpec { size_bytes: BYTES as u64, identity: *b"64 MiB as of old" };
    let disk = Vdisk::create(&medium, &spec)?;
    let piece = vec![0x5a; 1 << 20];
    (0..BYTES).step_by(piece.len()).try_for_each(|at| disk.write(&piece, at as u64))?;
    Ok(disk)
}

fn copied(copy: &[u8], into: &mut [u8], at: usize) -> Result<(), Failure> {
    into.copy_from_slice(&copy[at..at + into.len()]);
    Ok(())
}

/// 64 MiB in a new file.
fn filled(folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join("file");
    fs::write(&path, vec![0x5a; BYTES])?;
    File::open(&path)?.sync_all()?;
    Ok(path)
}

/// Opens a file or device past the page cache.
fn direct(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path)
}

fn from(file: File) -> Read<'static> {
    Box::new(move |into, at| Ok(file.read_exact_at(into, at as u64)?))
}

/// A file as a block device, until it is dropped.
struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    fn over(file: &Path) -> Result<LoopDevice, Failure> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output()?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).trim().into());
        }
        Ok(LoopDevice { path: String::from_utf8(made.stdout)?.trim().into() })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // What cannot be detached goes when its file is closed for good.
        let _left = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}
