//! What is done to a store for a long time, and what must be there at the end.
//!
//! Promise: keys and values follow from ids, so a model has ids alone; whatever is there that the
//! model has not, or the other way round, is found. Once a load is filled its entries are as many
//! as ever, or as many as a window has.
//! Never: knows a store.

use std::collections::VecDeque;

use holdfast_bench_common::random::mixed;

use crate::Failure;
use crate::peers::{Change, ENTRIES, Entries, Peer};

/// Rows that the queue has, always,
const QUEUED: u64 = 1_000;
/// and that come, and as many that go, in one transaction.
const QUEUE_BATCH: u64 = 20;
/// Bytes of a row of the queue.
const QUEUE_ROW_BYTES: usize = 200;

/// Sessions that live,
const SESSIONS: usize = 50_000;
/// and those that are replaced in one transaction.
const SESSION_BATCH: usize = 10;
/// Bytes of a session, at least and at most.
const SESSION_BYTES_MIN: u64 = 100;
const SESSION_BYTES_MAX: u64 = 1_000;

/// Series, of which each gets a point in one transaction.
const SERIES: u64 = 200;
/// Points of a series that are kept.
const WINDOW: u64 = 512;
/// Points of a series by which it is longer before they are deleted.
const EXPIRED: u64 = 16;
/// Bytes of a point.
const POINT_BYTES: usize = 32;

/// Large values,
const LARGE: usize = 50;
/// and their bytes.
const LARGE_BYTES: usize = 1 << 20;

/// Entries that one transaction of the filling has, at most.
const FILL: usize = 500;

/// The kinds of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    Queue,
    Sessions,
    Series,
    Large,
}

impl Load {
    pub(crate) const ALL: [Load; 4] = [Load::Queue, Load::Sessions, Load::Series, Load::Large];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Load::Queue => "queue",
            Load::Sessions => "sessions",
            Load::Series => "series",
            Load::Large => "large",
        }
    }

    /// The load for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Load::Queue => "a queue of 1,000 rows",
            Load::Sessions => "50,000 sessions that are replaced",
            Load::Series => "200 time series with a window",
            Load::Large => "50 values of 1 MiB that are overwritten",
        }
    }

    /// A model of it that has nothing yet.
    pub(crate) fn model(self) -> Model {
        Model { load: self, live: VecDeque::new(), next: 0, last: 0 }
    }
}

/// What a store must have.
pub(crate) struct Model {
    load: Load,
    /// The ids of what is there: of rows, sessions, points of all series, or each value's newest.
    live: VecDeque<u64>,
    /// The id that comes next,
    next: u64,
    /// and what random numbers follow from.
    last: u64,
}

/// What there is: how many, their bytes and a sum of them in whatever order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    check: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        self.bytes += (key.len() + value.len()) as u64;
        self.check = self.check.wrapping_add(hash(hash(0, key), value));
    }
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    let begin = mixed(seed ^ bytes.len() as u64);
    bytes.chunks(8).fold(begin, |hash, chunk| mixed(hash ^ word(chunk)))
}

/// Bytes that follow from an id and do not compress.
fn noise(id: u64, bytes: usize) -> Vec<u8> {
    let (seed, mut noise) = (mixed(id), vec![0; bytes]);
    for (at, chunk) in noise.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&mixed(seed ^ at as u64).to_le_bytes()[..chunk.len()]);
    }
    noise
}

fn entries(peer: &dyn Peer) -> Result<&dyn Entries, Failure> {
    peer.entries().ok_or_else(|| "its keys are numbers".into())
}

impl Model {
    /// Fills a store with what is there from the beginning.
    pub(crate) fn fill(&mut self, peer: &dyn Peer) -> Result<(), Failure> {
        let store = entries(peer)?;
        match self.load {
            Load::Queue => self.put_each(store, QUEUED as usize, FILL),
            Load::Sessions => self.put_each(store, SESSIONS, FILL),
            // A window comes by itself.
            Load::Series => Ok(()),
            Load::Large => self.put_each(store, LARGE, 1),
        }
    }

    fn put_each(
        &mut self,
        store: &dyn Entries,
        count: usize,
        at_once: usize,
    ) -> Result<(), Failure> {
        let mut left = count;
        while left > 0 {
            let some: Vec<u64> = (0..left.min(at_once)).map(|_| self.come()).collect();
            store.change(some.iter().map(|id| self.put(*id)).collect())?;
            left -= some.len();
        }
        Ok(())
    }

    /// Does the next transaction.
    pub(crate) fn step(&mut self, peer: &dyn Peer) -> Result<(), Failure> {
        let changes = match self.load {
            Load::Queue => self.pass(peer.head(ENTRIES)?)?,
            Load::Sessions => self.replace(),
            Load::Series => self.tick(),
            Load::Large => self.overwrite(),
        };
        entries(peer)?.change(changes)
    }

    /// Rows go at the head, which was looked for, and come at the tail.
    fn pass(&mut self, head: Option<u64>) -> Result<Vec<Change>, Failure> {
        if head != self.live.front().copied() {
            return Err(format!("the head is {head:?} instead of {:?}", self.live.front()).into());
        }
        let going: Vec<u64> = self.live.drain(..QUEUE_BATCH as usize).collect();
        let mut changes: Vec<Change> =
            going.into_iter().map(|id| Change::Delete(self.key(id))).collect();
        for _ in 0..QUEUE_BATCH {
            let id = self.come();
            changes.push(self.put(id));
        }
        Ok(changes)
    }

    /// Others come in the place of random sessions.
    fn replace(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for _ in 0..SESSION_BATCH {
            let place = self.random(self.live.len());
            changes.push(Change::Delete(self.key(self.live[place])));
            self.live.swap(place, 0);
            self.live.pop_front();
            let id = self.come();
            changes.push(self.put(id));
        }
        changes
    }

    /// A point of each series comes, and now and then what is too old goes.
    fn tick(&mut self) -> Vec<Change> {
        let coming: Vec<u64> = (0..SERIES).map(|_| self.come()).collect();
        let mut changes: Vec<Change> = coming.into_iter().map(|id| self.put(id)).collect();
        if self.live.len() as u64 >= SERIES * (WINDOW + EXPIRED) {
            let old: Vec<u64> = self.live.drain(..(SERIES * EXPIRED) as usize).collect();
            changes.extend((0..SERIES as usize).map(|series| {
                let of_it = old.iter().skip(series).step_by(SERIES as usize);
                Change::DeleteAll(of_it.map(|id| self.key(*id)).collect())
            }));
        }
        changes
    }

    /// A random value gets others.
    fn overwrite(&mut self) -> Vec<Change> {
        let place = self.random(LARGE);
        let id = self.next - self.next % LARGE as u64 + (LARGE + place) as u64;
        self.next = id;
        self.live[place] = id;
        vec![self.put(id)]
    }

    fn random(&mut self, below: usize) -> usize {
        self.last = mixed(self.last ^ self.next);
        (self.last % below as u64) as usize
    }

    /// A new id, which is there from now on.
    fn come(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        self.live.push_back(id);
        id
    }

    fn put(&self, id: u64) -> Change {
        Change::Put(self.key(id), self.value(id))
    }

    fn key(&self, id: u64) -> Vec<u8> {
        match self.load {
            Load::Queue => id.to_be_bytes().into(),
            Load::Sessions => noise(!id, 16),
            Load::Series => [id % SERIES, id / SERIES].map(u64::to_be_bytes).concat(),
            Load::Large => (id % LARGE as u64).to_be_bytes().into(),
        }
    }

    fn value(&self, id: u64) -> Vec<u8> {
        let span = SESSION_BYTES_MAX - SESSION_BYTES_MIN + 1;
        let bytes = match self.load {
            Load::Queue => QUEUE_ROW_BYTES,
            Load::Sessions => (SESSION_BYTES_MIN + mixed(id) % span) as usize,
            Load::Series => POINT_BYTES,
            Load::Large => LARGE_BYTES,
        };
        noise(id, bytes)
    }

    /// What must be there.
    pub(crate) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        self.live.iter().for_each(|id| sum.add(&self.key(*id), &self.value(*id)));
        sum
    }

    /// Looks whether just that is there.
    pub(crate) fn check(&self, peer: &dyn Peer) -> Result<(), Failure> {
        let (mut found, wanted) = (Sum::default(), self.sum());
        entries(peer)?.each(&mut |key, value| found.add(key, value))?;
        if found == wanted {
            return Ok(());
        }
        let name = self.load.name();
        Err(format!("{name}: {found:?} is there instead of {wanted:?}").into())
    }
}

#[cfg(test)]
mod tests;
