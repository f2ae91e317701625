//! Blocks of a file on the disk, kept in durable memory: how long a hit takes beside the disk, and
//! what is still there when the process before was killed.
//!
//! Promise: both read the same blocks of the same file in the same order, past the page cache; the
//! process that warms the cache is killed before anybody else looks.
//! Never: counts a block that the cache does not have as a hit.

use std::ffi::OsStr;
use std::fs;
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use holdfast_bench_common::child::Child;
use holdfast_bench_common::colours::{OTHER, OWN};
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::random::mixed;
use holdfast_bench_common::task::Task;
use holdfast_bench_common::{Failure, output};
use holdfast_blocks::{BlockCache, CacheSpec, CachedFiles};
use holdfast_figures::{Bar, Figure, Panel, Scale};
use holdfast_io::real::RealFiles;
use holdfast_io::{Files, OpenFile, OpenHow};
use holdfast_memory::Medium;

use crate::part::Measured;

/// The word for the process that is killed; the folders of the home and of the cache follow.
pub(crate) const WARM: &str = "--warm";

const HOME: &str = "home";
const CACHE: &str = "cache";
const IDENTITY: [u8; 16] = *b"a cache to count";
/// The home is used through its cache alone.
const PLEDGE: u64 = 1;

const BLOCK_BYTES: usize = 4096;

/// Blocks of the home. The cache has room for twice as many, because each has sixteen places only.
const BLOCKS: usize = 16 << 10;

/// How much is measured.
struct Effort {
    rounds: u64,
    /// Blocks that are read from the disk in a round.
    home_blocks: usize,
}

/// Where a transfer past the page cache may go.
#[repr(align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// Measures hits, the disk, and what a death leaves.
pub(crate) fn measure(task: &Task, disk: &Place) -> Result<Measured, Failure> {
    let whole = Effort { rounds: 7, home_blocks: 2000 };
    let effort = task.effort(whole, Effort { rounds: 3, home_blocks: 200 });
    fs::write(disk.path().join(HOME), vec![0x5a; BLOCKS * BLOCK_BYTES])?;
    disk.settle()?;
    let mut ledger = Ledger::default();
    for seed in 1..=effort.rounds {
        output::progress(&format!("pcache: round {seed} of {}", effort.rounds));
        let memory = Place::in_memory("holdfast-bench-pcache")?;
        round(&mut ledger, (disk.path(), memory.path()), seed, effort.home_blocks)?;
    }
    let with_peer = |figure: Figure| match figure.id.as_str() {
        "pcache.hit_us" => figure.beside("pcache.no_cache_us: the same file on the disk"),
        "pcache.warm_hits" => figure.wanted(100.0),
        _ => figure,
    };
    let figures = ledger.figures().into_iter().map(with_peer).collect();
    Ok(Measured { figures, panels: vec![panel()], ..Measured::default() })
}

/// Fills the cache and says so. Goes on until it is killed.
pub(crate) fn warm(home: &Path, memory: &Path) -> Result<(), Failure> {
    let bytes = 2 * (BLOCKS * BLOCK_BYTES) as u64;
    let cache = BlockCache::create(&medium(memory), &CacheSpec { bytes, identity: IDENTITY })?;
    let file = cached(home, cache)?;
    read_us(&*file, 0, BLOCKS)?;
    output::filled()?;
    // The end of the input is the parent's end.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

/// The first pass over a cache whose user was killed, another one, and some blocks from the disk.
fn round(
    ledger: &mut Ledger,
    (home, memory): (&Path, &Path),
    seed: u64,
    home_blocks: usize,
) -> Result<(), Failure> {
    let mut child = Child::start([OsStr::new(WARM), home.as_os_str(), memory.as_os_str()])?;
    if child.line()? != output::FILLED {
        return Err("the process that warms the cache has ended".into());
    }
    drop(child);
    let file = cached(home, BlockCache::attach(&medium(memory), IDENTITY)?)?;
    let before = hits(memory)?;
    ledger.lower("pcache.first_pass_us".into(), "us", read_us(&*file, seed, BLOCKS)?);
    let share = 100.0 * (hits(memory)? - before) as f64 / BLOCKS as f64;
    ledger.higher("pcache.warm_hits".into(), "percent", share);
    ledger.lower("pcache.hit_us".into(), "us", read_us(&*file, seed, BLOCKS)?);
    let file = open(&RealFiles::open(home)?)?;
    ledger.lower("pcache.no_cache_us".into(), "us", read_us(&*file, seed, home_blocks)?);
    Ok(())
}

/// Microseconds for a block, reading so many in an order that nobody can guess.
fn read_us(file: &dyn OpenFile, seed: u64, blocks: usize) -> Result<f64, Failure> {
    let mut order: Vec<usize> = (0..BLOCKS).collect();
    order.sort_by_key(|block| mixed(seed << 32 | *block as u64));
    let mut into = Block([0; BLOCK_BYTES]);
    let began = Instant::now();
    for block in order.into_iter().take(blocks) {
        file.read_full_at(black_box(&mut into.0), (block * BLOCK_BYTES) as u64)?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / blocks as f64)
}

fn hits(memory: &Path) -> Result<u64, Failure> {
    Ok(BlockCache::observe(&medium(memory))?.hits)
}

fn medium(memory: &Path) -> Medium {
    Medium::Shm { path: memory.join(CACHE) }
}

/// The home through a cache.
fn cached(home: &Path, cache: BlockCache) -> Result<Arc<dyn OpenFile>, Failure> {
    let files = CachedFiles::new(Arc::new(RealFiles::open(home)?), HOME, Arc::new(cache), PLEDGE)?;
    Ok(open(&files)?)
}

/// The home past the page cache.
fn open(files: &dyn Files) -> io::Result<Arc<dyn OpenFile>> {
    files.open(Path::new(HOME), OpenHow { direct: true, ..OpenHow::default() })
}

fn panel() -> Panel {
    let bar = |label: &str, id: &str, colour| Bar { label: label.into(), colour, id: id.into() };
    let bars = vec![
        bar("a hit", "pcache.hit_us", OWN),
        bar("the first after a death", "pcache.first_pass_us", OWN),
        bar("without a cache", "pcache.no_cache_us", OTHER),
    ];
    Panel { title: "a block of 4 KiB read, us".into(), scale: Scale::Logarithmic(0.1), bars }
}
