//! Stores that a killed process left behind, with work in their logs that is nowhere else yet.
//!
//! Promise: the process that did the work is killed while nothing is closed; the clock runs from
//! the start of the next process until its first transaction is acknowledged, and on until it does
//! 90% of what was done before; then everything acknowledged is there. Files are as the kernel has
//! them in memory. Each measurement has a copy of what was left.
//! Never: opens the original.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_bench_common::child::{self, Child};
use holdfast_bench_common::output;
use holdfast_bench_common::place::Place;

use crate::Failure;
use crate::drive::{self, Hand};
use crate::effort::CACHE_BYTES;
use crate::peers::{Durability, Kind, Peer, Terms};
use crate::tpcb::{self, Bank, Client};

/// Clients before the kill and after it.
const CLIENTS: u32 = 2;

/// A client's transactions before the kill are numbered below this, and those after it from here.
const NUMBERS: u64 = 1 << 32;

/// Accounts whose rows are a megabyte, with their keys.
const ACCOUNTS_PER_MB: u32 = 10_000;

/// How long transactions are counted before their rate is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Looks that a rate is of.
const LOOKS: usize = 10;

/// What the rate must reach of that before the kill.
const REACHED: f64 = 0.9;

/// What a killed process left.
pub(crate) struct Left {
    pub(crate) kind: &'static Kind,
    place: Place,
    pub(crate) work: Work,
    /// Transactions in a second, before the kill,
    per_s: f64,
    /// and all that were acknowledged.
    done: u64,
}

/// What is done before a kill, and after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Megabytes of rows.
    pub(crate) mb: u32,
    pub(crate) time: Duration,
}

/// How a store came back.
pub(crate) struct Restarted {
    pub(crate) first_ms: f64,
    /// At least this if it was not within the time that was looked at.
    pub(crate) recovered_ms: f64,
}

impl Work {
    fn bank(self) -> Bank {
        Bank { branches: CLIENTS, accounts: self.mb * ACCOUNTS_PER_MB / CLIENTS }
    }

    /// As words for a child.
    fn words(self) -> [String; 2] {
        [self.mb.to_string(), self.time.as_millis().to_string()]
    }

    /// From such words.
    pub(crate) fn parse([mb, time]: [&str; 2]) -> Result<Work, Failure> {
        Ok(Work { mb: mb.parse()?, time: Duration::from_millis(time.parse()?) })
    }
}

fn open(kind: &Kind, folder: &Path) -> Result<Box<dyn Peer>, Failure> {
    let durability = Durability::Synced;
    (kind.open)(
        folder,
        &Terms { durability, cache_bytes: 2 * CACHE_BYTES, put_off: true, keeps_past: true },
    )
}

/// A process that leaves a store, or opens what another left.
fn start(word: &str, kind: &Kind, work: Work, more: &[&str], at: &Path) -> Result<Child, Failure> {
    let [mb, time] = work.words();
    let words = [word, kind.name, &mb, &time].into_iter().chain(more.iter().copied());
    Child::start(words.map(OsStr::new).chain([at.as_os_str()]))
}

impl Left {
    /// Has a store filled, and the process that did it killed.
    pub(crate) fn by(kind: &'static Kind, work: Work, whole: &Place) -> Result<Left, Failure> {
        let place = whole.folder(&format!("left-{}-{}", kind.name, work.mb))?;
        let mut child = start("--leave", kind, work, &[], place.path())?;
        let said = child::numbers(&child.line()?)?;
        drop(child);
        let [per_s, done] = said[..] else {
            return Err("the process that leaves a store failed".into());
        };
        Ok(Left { kind, place, work, per_s, done: done as u64 })
    }

    /// Has a copy of it opened.
    pub(crate) fn restart(&self, whole: &Place) -> Result<Restarted, Failure> {
        let place = whole.copy("restart", self.place.path())?;
        let more = [self.per_s.to_string(), self.done.to_string()];
        let more = [more[0].as_str(), more[1].as_str()];
        let began = Instant::now();
        let mut child = start("--restart", self.kind, self.work, &more, place.path())?;
        let first = child.line()?;
        let first_ms = began.elapsed().as_secs_f64() * 1e3;
        match child::numbers(&child.line()?)?[..] {
            [after_ms] if first == output::FILLED => {
                Ok(Restarted { first_ms, recovered_ms: first_ms + after_ms })
            }
            _ => Err("what was left does not open whole".into()),
        }
    }
}

/// What the process does that is killed.
pub(crate) fn leave(kind: &Kind, work: Work, folder: &Path) -> Result<(), Failure> {
    let peer = open(kind, folder)?;
    tpcb::load(&*peer, work.bank())?;
    let mut hands = Hand::all(work.bank(), CLIENTS);
    drive::all(&*peer, &mut hands, work.time)?;
    let done: u64 = hands.iter().map(Hand::done).sum();
    output::numbers(&[done as f64 / work.time.as_secs_f64(), done as f64])?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// What the process does that comes after it.
pub(crate) fn restart(
    kind: &Kind,
    work: Work,
    [per_s, before]: [&str; 2],
    folder: &Path,
) -> Result<(), Failure> {
    let (per_s, before): (f64, u64) = (per_s.parse()?, before.parse()?);
    let peer = open(kind, folder)?;
    let client = |client| Hand::new(Client::new(work.bank(), client, NUMBERS));
    let mut hands: Vec<Hand> = (0..CLIENTS).map(client).collect();
    hands[0].transact(&mut *peer.worker()?)?;
    output::filled()?;
    let ends = drive::ends(&*peer, &mut hands, work.time)?;
    output::numbers(&[recovered_ms(&ends, per_s, work.time)])?;

    let done = hands.iter().map(Hand::done).sum::<u64>() + before;
    // Of each client one may have been under way when it was killed.
    tpcb::check(&*peer, work.bank(), done..=done + u64::from(CLIENTS))?;
    peer.close()
}

/// Milliseconds until so much was done as before, of transactions that ended then.
pub(crate) fn recovered_ms(ends: &[Duration], per_s: f64, time: Duration) -> f64 {
    let looks = time.as_millis() / LOOK.as_millis();
    let mut counts = vec![0; looks as usize];
    for end in ends {
        let look = (end.as_millis() / LOOK.as_millis()) as usize;
        // What ended after the last look is in none.
        if let Some(count) = counts.get_mut(look) {
            *count += 1;
        }
    }
    let wanted = REACHED * per_s * LOOK.as_secs_f64() * LOOKS as f64;
    let is_reached = |counts: &[u32]| f64::from(counts.iter().sum::<u32>()) >= wanted;
    let look = counts.windows(LOOKS).position(is_reached).map_or(looks as usize, |it| it + LOOKS);
    LOOK.as_secs_f64() * 1e3 * look as f64
}

/// By how much more the second of each pair is where the first is one more: the line that is the
/// closest to all of them. Nothing if there is no such line.
pub(crate) fn slope(pairs: &[(f64, f64)]) -> Option<f64> {
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let (x_mean, y_mean) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let (mut both, mut square) = (0.0, 0.0);
    for (x, y) in pairs {
        both += (x - x_mean) * (y - y_mean);
        square += (x - x_mean) * (x - x_mean);
    }
    (square > 0.0).then(|| both / square)
}

#[cfg(test)]
mod tests;
