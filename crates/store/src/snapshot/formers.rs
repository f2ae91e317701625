//! What keys were before they changed, in memory, for snapshots that are older than the change.
//!
//! Promise: whoever reads by a snapshot, under the latch of a key's leaf, is told what the leaf had
//! of the key where the snapshot stands, or that the snapshot is over. What is kept has a bound;
//! beyond it the oldest snapshot is over. What a snapshot held goes with it.
//! Never: waits for a lock, a latch or the log; costs more than two loads while there is no
//! snapshot.
//!
//! Each snapshot has a layer: what keys were before they first changed behind its place, up to the
//! place of the next snapshot. So a key that changes a million times is kept once a snapshot, and
//! what it was where one stands is in the first layer from its own on that has the key; if none
//! has, it is as it was.
//!
//! A change has its place in the stream before it asks whether there is a snapshot, and a snapshot
//! asks for its place after it was announced. So whoever does not see that a snapshot is wanted has
//! a place before it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use holdfast_pages::canary::{Invariant, holds};
use holdfast_pages::{PageNumber, Rsn};

use crate::locks::names::Name;
use crate::pool::unfreed::{PutOff, Unfreed};
use crate::snapshot::former::Former;
use layer::{Entry, Layer, Layers};
pub(crate) use running::Running;

mod layer;
mod running;

/// Parts of what is kept that are locked apart.
const SHARDS: usize = 64;

/// What keys of a store were. Whoever changes one looks here: what others change all the time lies
/// elsewhere.
#[repr(align(128))]
pub(crate) struct Formers {
    /// Snapshots that there are or that are announced.
    wanted: AtomicUsize,
    shards: Box<[Mutex<Layers>]>,
    readers: Mutex<Readers>,
    /// Held by whoever takes a snapshot, so that places and layers have one order.
    taking: Mutex<()>,
    bytes: AtomicU64,
    bytes_max: u64,
}

/// Snapshots that are not over.
#[derive(Default)]
struct Readers {
    /// From the oldest to the newest.
    live: Vec<Arc<Reader>>,
    taken: u64,
    leaving: VecDeque<Leaving>,
    /// Pages of large values that nobody shows any more, to be freed.
    left: Unfreed,
}

/// A large value that no leaf tells of since this place.
struct Leaving {
    at: Rsn,
    bytes: u64,
    pages: PutOff,
}

/// A snapshot, as what is kept for it knows it.
pub(crate) struct Reader {
    number: u64,
    place: OnceLock<Place>,
    is_over: AtomicBool,
}

/// Where a snapshot stands.
struct Place {
    at: Rsn,
    running: Running,
}

impl Formers {
    /// None, and at most so many bytes of them.
    pub(crate) fn new(bytes_max: u64) -> Formers {
        Formers {
            wanted: AtomicUsize::new(0),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            readers: Mutex::default(),
            taking: Mutex::default(),
            bytes: AtomicU64::new(0),
            bytes_max,
        }
    }

    /// Takes a snapshot: `stand` says where the stream ends now, or ended at some moment since it
    /// was called, and what runs there.
    ///
    /// # Errors
    /// Those of `stand`.
    pub(crate) fn take<E>(
        &self,
        stand: impl FnOnce() -> Result<(Rsn, Running), E>,
    ) -> Result<Arc<Reader>, E> {
        let _alone = self.taking.lock().expect("nothing panics that takes a snapshot");
        let reader = self.announce();
        match stand() {
            Ok((at, running)) => {
                self.place(&reader, at, running);
                Ok(reader)
            }
            Err(error) => {
                self.end(&reader);
                Err(error)
            }
        }
    }

    /// Whether there may be a snapshot that does not show what is put now.
    #[inline]
    pub(crate) fn are_wanted(&self) -> bool {
        // EDGE snapshot-announced: whoever put something behind its place sees it.
        self.wanted.load(Ordering::Acquire) > 0
    }

    /// Remembers what a key was before the change that stands at `rsn`, unless that is known. Its
    /// leaf is latched.
    pub(crate) fn note(
        &self,
        tree: PageNumber,
        key: &[u8],
        rsn: Rsn,
        former: impl FnOnce() -> Former,
    ) {
        let mut layers = self.shard(tree, key);
        // Most keys that change have changed a moment ago.
        if layers.knows(tree, key, rsn) || !holds(Invariant::FormersAreNoted) {
            return;
        }
        let added = layers.note(Entry { tree, key: key.to_vec(), former: former() }, rsn);
        // Before anybody can take it away again.
        self.bytes.fetch_add(added, Ordering::Relaxed);
    }

    /// What the leaf of a key had of it where the snapshot stands. It is latched, has `now`, and
    /// its last record stands at `last`. Ask [`Reader::is_over`] afterwards.
    pub(crate) fn as_of(
        &self,
        reader: &Reader,
        (tree, key): (PageNumber, &[u8]),
        last: Rsn,
        now: Former,
    ) -> Former {
        // The entry of a key that a snapshot shows stays: see `shows`.
        if last < reader.at() || now == Former::Absent {
            return now;
        }
        self.shard(tree, key).find(reader.number, tree, key).unwrap_or(now)
    }

    /// Whether a snapshot may show a key that is deleted, and that nobody has a lock on. Its leaf
    /// is latched.
    pub(crate) fn shows(&self, tree: PageNumber, key: &[u8]) -> bool {
        // What is kept is what the key was where some snapshot stands. If that is never a value,
        // each of its lives lies between two of them, or behind all.
        self.are_wanted()
            && holds(Invariant::ShownKeysStay)
            && (self.shard(tree, key).has_value(tree, key)
                || self.readers().live.iter().any(|reader| reader.may_show(tree, key)))
    }

    /// Forgets a key whose entry is gone, which no snapshot shows: its leaf, latched since that was
    /// asked, says the same.
    pub(crate) fn forget(&self, tree: PageNumber, key: &[u8]) {
        let freed = self.shard(tree, key).forget(tree, key);
        self.bytes.fetch_sub(freed, Ordering::Relaxed);
    }

    /// Keeps the pages of a large value, which no leaf tells of any more, if a snapshot may show
    /// it. `next` is where the stream ends.
    pub(crate) fn keep(&self, pages: PutOff, bytes: u64, next: impl FnOnce() -> Rsn) -> bool {
        if !self.are_wanted() || !holds(Invariant::ShownValuesStay) {
            return false;
        }
        let mut readers = self.readers();
        let is_kept = !readers.live.is_empty();
        if is_kept {
            readers.leaving.push_back(Leaving { at: next(), bytes, pages });
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        is_kept
    }

    /// Whether somebody takes a snapshot at this moment who may not see yet what was put before
    /// this call.
    pub(crate) fn are_being_taken(&self) -> bool {
        self.are_wanted() && self.readers().live.iter().any(|reader| reader.place.get().is_none())
    }

    /// Ends a snapshot, unless it is over.
    pub(crate) fn end(&self, reader: &Reader) {
        let mut readers = self.readers();
        let place = readers.live.iter().position(|live| live.number == reader.number);
        let Some(place) = place else { return };
        // EDGE snapshot-over: whoever misses what it held sees this.
        reader.is_over.store(true, Ordering::Release);
        readers.live.remove(place);
        let mut freed = readers.leave() + reader.bytes();
        drop(readers);
        for shard in &self.shards {
            let (layer, bytes) = lock(shard).remove(reader.number);
            freed += bytes;
            // Nobody waits for that.
            drop(layer);
        }
        self.bytes.fetch_sub(freed, Ordering::Relaxed);
        self.wanted.fetch_sub(1, Ordering::Relaxed);
    }

    /// Ends the oldest snapshots as long as more is kept than may be. No latch is held.
    #[inline]
    pub(crate) fn bound(&self) {
        if self.bytes() > self.bytes_max {
            self.end_oldest();
        }
    }

    #[cold]
    fn end_oldest(&self) {
        while self.bytes() > self.bytes_max {
            let oldest = self.readers().live.first().cloned();
            let Some(oldest) = oldest.filter(|oldest| oldest.place.get().is_some()) else { return };
            self.end(&oldest);
        }
    }

    /// Pages of a large value that no snapshot shows any more, if there are some.
    pub(crate) fn take_left(&self) -> Option<PutOff> {
        self.readers().left.pop()
    }

    /// How many pages of such values there are.
    pub(crate) fn left_pages(&self) -> u64 {
        self.readers().left.pages()
    }

    /// Bytes that are kept.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Most bytes that may be.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Snapshots that are not over.
    pub(crate) fn snapshots(&self) -> usize {
        self.readers().live.len()
    }

    fn announce(&self) -> Arc<Reader> {
        // EDGE snapshot-announced: it asks for its place after this.
        self.wanted.fetch_add(1, Ordering::Release);
        let mut readers = self.readers();
        readers.taken += 1;
        let (number, place) = (readers.taken, OnceLock::new());
        let reader = Arc::new(Reader { number, place, is_over: AtomicBool::new(false) });
        readers.live.push(Arc::clone(&reader));
        drop(readers);
        self.shards.iter().for_each(|shard| lock(shard).push(Layer::new(number)));
        reader
    }

    fn place(&self, reader: &Reader, at: Rsn, running: Running) {
        self.bytes.fetch_add(running.bytes(), Ordering::Relaxed);
        let is_first = reader.place.set(Place { at, running }).is_ok();
        assert!(is_first, "a snapshot stands at one place");
        for shard in &self.shards {
            let freed = lock(shard).place(reader.number, at);
            self.bytes.fetch_sub(freed, Ordering::Relaxed);
        }
    }

    fn shard(&self, tree: PageNumber, key: &[u8]) -> MutexGuard<'_, Layers> {
        lock(&self.shards[Name::of(tree, key).part(SHARDS)])
    }

    fn readers(&self) -> MutexGuard<'_, Readers> {
        lock(&self.readers)
    }
}

impl Readers {
    /// Lets the large values go that every snapshot that is left is too new for. How many bytes
    /// they have.
    fn leave(&mut self) -> u64 {
        let oldest = self.live.first().map(|oldest| oldest.place.get());
        let oldest = oldest.map(|place| place.map_or(Rsn::NONE, |place| place.at));
        let may_leave = |left: &&Leaving| oldest.is_none_or(|oldest| left.at <= oldest);
        let count = self.leaving.iter().take_while(may_leave).count();
        let (left, mut bytes) = (&mut self.left, 0);
        for leaving in self.leaving.drain(..count) {
            bytes += leaving.bytes;
            left.push(leaving.pages);
        }
        bytes
    }
}

impl Reader {
    /// Where it stands.
    ///
    /// # Panics
    /// If it is only announced.
    pub(crate) fn at(&self) -> Rsn {
        self.standing().at
    }

    /// What transactions had changed of a key that ran where it stands.
    pub(crate) fn running(&self, tree: PageNumber, key: &[u8]) -> &[Vec<u8>] {
        let is_undone = holds(Invariant::SnapshotsUndoWhatRuns);
        if is_undone { self.standing().running.of_key(tree, key) } else { &[] }
    }

    /// Whether what it needs may be gone.
    pub(crate) fn is_over(&self) -> bool {
        // EDGE snapshot-over: what it held went after that.
        self.is_over.load(Ordering::Acquire)
    }

    fn may_show(&self, tree: PageNumber, key: &[u8]) -> bool {
        self.place.get().is_none_or(|place| !place.running.of_key(tree, key).is_empty())
    }

    fn bytes(&self) -> u64 {
        self.place.get().map_or(0, |place| place.running.bytes())
    }

    fn standing(&self) -> &Place {
        self.place.get().expect("who has a snapshot knows where it stands")
    }
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().expect("nothing panics with what is kept")
}

impl std::fmt::Debug for Formers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = out.debug_struct("Formers");
        out.field("snapshots", &self.snapshots()).field("bytes", &self.bytes());
        out.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
