//! Four loads that go on and on, side by side, in one kind of store.
//!
//! Promise: each load has a store and a thread of its own; every commit is synced, and no store
//! keeps what was, as in `space`. All four stores of a kind are in one process, which has no other,
//! so its memory is theirs. At the end what is there is what a model has, and again after the
//! stores have been opened anew.
//! Never: slows a load down, so that what one leaves behind costs the others what it would.

pub(crate) mod loads;
pub(crate) mod summary;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_bench_common::child::{self, Child};
use holdfast_bench_common::output;
use holdfast_bench_common::place::Place;

use crate::Failure;
use crate::effort::Effort;
use crate::peers::{Durability, Kind, Peer, Terms};
use crate::space;
use loads::{Load, Model};

/// Memory for what each store keeps of its files: more than any load has, and so little that it is
/// full before the clock starts.
const CACHE_BYTES: usize = 64 << 20;

/// Loads.
const LOADS: usize = Load::ALL.len();

/// How often somebody looks whether a load has failed.
const LOOK: Duration = Duration::from_millis(100);

/// What was seen of a store.
pub(crate) struct Soaked {
    pub(crate) kind: &'static Kind,
    pub(crate) samples: Vec<Sample>,
    /// Bytes of keys and values that were there at the end, by load.
    pub(crate) live: [f64; LOADS],
}

/// What was seen at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Seconds since the loads began.
    pub(crate) at_s: f64,
    /// Transactions in a second since the sample before, by load.
    pub(crate) per_s: [f64; LOADS],
    /// Bytes that the folder of each load takes,
    pub(crate) bytes: [f64; LOADS],
    /// and those that the process has in memory.
    pub(crate) resident: f64,
}

impl Sample {
    fn numbers(&self) -> Vec<f64> {
        [&[self.at_s][..], &self.per_s, &self.bytes, &[self.resident]].concat()
    }

    /// From such numbers.
    fn of(numbers: &[f64]) -> Option<Sample> {
        let (at_s, rest) = numbers.split_first()?;
        let (per_s, rest) = rest.split_first_chunk()?;
        let (bytes, rest) = rest.split_first_chunk()?;
        let [resident] = rest[..] else { return None };
        Some(Sample { at_s: *at_s, per_s: *per_s, bytes: *bytes, resident })
    }
}

/// What every store is told.
pub(crate) fn terms() -> Terms {
    let durability = Durability::Synced;
    Terms { durability, cache_bytes: CACHE_BYTES, put_off: false, keeps_past: false }
}

/// Has a process use a kind of store so long.
pub(crate) fn measure(
    kind: &'static Kind,
    effort: &Effort,
    whole: &Place,
) -> Result<Soaked, Failure> {
    output::progress(&format!("store.soak.{}", kind.name));
    let place = whole.folder("soak")?;
    let times = [effort.soak, effort.soak_sample].map(|time| time.as_millis().to_string());
    let words = ["--soak", kind.name, &times[0], &times[1]];
    let folder = place.path().to_str().ok_or("the folder's name is no text")?;
    let mut child = Child::start(words.into_iter().chain([folder]))?;
    let mut samples = Vec::new();
    loop {
        let line = child.line()?;
        let numbers = child::numbers(&line)?;
        if let Some(sample) = Sample::of(&numbers) {
            output::progress(&format!("{}: {}", kind.name, line.trim_end()));
            samples.push(sample);
        } else {
            let live = numbers.try_into().map_err(|_| format!("soak: {} failed", kind.name))?;
            return Ok(Soaked { kind, samples, live });
        }
    }
}

/// What that process does.
pub(crate) fn soak(kind: &Kind, times: [&str; 2], folder: &Path) -> Result<(), Failure> {
    let millis = |text: &str| Ok::<_, Failure>(Duration::from_millis(text.parse()?));
    let [time, every] = [millis(times[0])?, millis(times[1])?];
    let mut models = Load::ALL.map(Load::model);
    {
        let peers = open(kind, folder)?;
        for (model, peer) in models.iter_mut().zip(&peers) {
            model.fill(&**peer)?;
        }
        run(&peers, &mut models, folder, [time, every])?;
        close(peers, &models)?;
    }
    close(open(kind, folder)?, &models)?;
    output::numbers(&models.map(|model| model.sum().bytes as f64))?;
    Ok(())
}

fn open(kind: &Kind, folder: &Path) -> Result<Vec<Box<dyn Peer>>, Failure> {
    let open = |load: Load| {
        let folder = folder.join(load.name());
        fs::create_dir_all(&folder)?;
        (kind.open)(&folder, &terms())
    };
    Load::ALL.into_iter().map(open).collect()
}

/// Looks whether all is there before they are closed.
fn close(peers: Vec<Box<dyn Peer>>, models: &[Model]) -> Result<(), Failure> {
    for (peer, model) in peers.into_iter().zip(models) {
        model.check(&*peer)?;
        peer.close()?;
    }
    Ok(())
}

/// All loads at a time, and somebody who looks at them.
fn run(
    peers: &[Box<dyn Peer>],
    models: &mut [Model; LOADS],
    folder: &Path,
    times: [Duration; 2],
) -> Result<(), Failure> {
    let (counts, ends) = ([const { AtomicU64::new(0) }; LOADS], AtomicBool::new(false));
    thread::scope(|scope| {
        let threads: Vec<_> = models
            .iter_mut()
            .zip(peers)
            .zip(&counts)
            .map(|((model, peer), count)| {
                let ends = &ends;
                scope.spawn(move || go_on(model, &**peer, count, ends))
            })
            .collect();
        let looked = look(&counts, &ends, folder, times);
        ends.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a load panicked")??;
        }
        looked
    })
}

/// One load, until it is to end.
fn go_on(
    model: &mut Model,
    peer: &dyn Peer,
    count: &AtomicU64,
    ends: &AtomicBool,
) -> Result<(), Failure> {
    while !ends.load(Ordering::Relaxed) {
        if let Err(error) = model.step(peer) {
            ends.store(true, Ordering::Relaxed);
            return Err(error);
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Says what is seen now and then, until the time is over or a load has failed.
fn look(
    counts: &[AtomicU64; LOADS],
    ends: &AtomicBool,
    folder: &Path,
    [time, every]: [Duration; 2],
) -> Result<(), Failure> {
    let (began, mut before, mut before_s) = (Instant::now(), [0; LOADS], 0.0);
    let mut next = every;
    while next <= time && !ends.load(Ordering::Relaxed) {
        let left = next.saturating_sub(began.elapsed());
        if !left.is_zero() {
            thread::sleep(left.min(LOOK));
            continue;
        }
        let (at_s, done) = (began.elapsed().as_secs_f64(), now(counts));
        let per_s = |load: usize| (done[load] - before[load]) as f64 / (at_s - before_s);
        let per_s = std::array::from_fn(per_s);
        let mut bytes = [0.0; LOADS];
        for (bytes, load) in bytes.iter_mut().zip(Load::ALL) {
            *bytes = space::allocated(&folder.join(load.name()))? as f64;
        }
        let sample = Sample { at_s, per_s, bytes, resident: resident()? };
        output::numbers(&sample.numbers())?;
        (before, before_s, next) = (done, at_s, next + every);
    }
    Ok(())
}

fn now(counts: &[AtomicU64; LOADS]) -> [u64; LOADS] {
    std::array::from_fn(|load| counts[load].load(Ordering::Relaxed))
}

/// Bytes of this process that are in memory.
fn resident() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split_whitespace().nth(1).ok_or("no such number")?.parse()?;
    Ok(pages as f64 * rustix::param::page_size() as f64)
}

#[cfg(test)]
mod tests;
