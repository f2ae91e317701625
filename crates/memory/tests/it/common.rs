//! What the tests share: a folder of their own, small regions, bytes that tell positions apart.

use std::path::PathBuf;

use holdfast_memory::{Medium, Region, RegionSpec};
use tempfile::TempDir;

/// Bytes of the rings in these tests.
pub(crate) const RING_BYTES: u64 = 8192;

/// Whose region it is in these tests.
pub(crate) const IDENTITY: [u8; 16] = *b"a log of my own.";

/// A folder in shared memory, removed at the end, and a medium in it.
pub(crate) fn shm() -> (TempDir, Medium) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("region");
    (folder, Medium::Shm { path })
}

pub(crate) fn path_of(medium: &Medium) -> PathBuf {
    medium.path().unwrap().to_owned()
}

pub(crate) fn spec() -> RegionSpec {
    RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 1000, identity: IDENTITY }
}

pub(crate) fn create(medium: &Medium) -> Region {
    Region::create(medium, &spec()).unwrap()
}

/// Appends `bytes` bytes, each telling its position; false if there is no room.
pub(crate) fn append(region: &Region, bytes: u64) -> bool {
    let mut guard = region.lock();
    let tail = guard.tail();
    let Some(room) = guard.reserve(bytes) else {
        return false;
    };
    room.copy_from_slice(&pattern(tail, bytes));
    guard.publish(bytes);
    true
}

/// What [`append`] writes at a position.
pub(crate) fn pattern(lsn: u64, bytes: u64) -> Vec<u8> {
    (lsn..lsn + bytes).map(|at| (at ^ (at >> 8) ^ 0x5a) as u8).collect()
}

/// Makes everything published durable and gives it back.
pub(crate) fn empty(region: &Region) {
    let tail = region.marks().tail;
    region.set_durable(tail);
    region.release(tail);
}

/// How many bytes between `released` and `tail` are not what [`append`] writes there.
pub(crate) fn position_faults(region: &Region) -> usize {
    let marks = region.marks();
    let pin = region.pin(marks.released);
    let right = |at: &u64| pin.bytes(*at, 1) == pattern(*at, 1);
    (marks.released..marks.tail).filter(|at| !right(at)).count()
}

/// Random numbers from a seed (xorshift64*, S. Vigna, "An experimental exploration of Marsaglia's
/// xorshift generators").
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Runs `body` for seeds 1..=`count`, or for HOLDFAST_SEED alone. A failure prints the command
/// that repeats it.
pub(crate) fn for_seeds(test: &str, count: u64, body: impl Fn(&mut Random)) {
    let given = std::env::var("HOLDFAST_SEED").ok().map(|seed| seed.parse().unwrap());
    for seed in given.map_or(1..=count, |seed| seed..=seed) {
        let replay = Replay { test, seed };
        body(&mut Random::seeded(seed));
        std::mem::forget(replay);
    }
}

/// Dropped only while a failed body unwinds.
struct Replay<'a> {
    test: &'a str,
    seed: u64,
}

impl Drop for Replay<'_> {
    #[allow(clippy::print_stderr)] // the seed is for whoever reads the failure
    fn drop(&mut self) {
        eprintln!(
            "failed with seed {seed}; to repeat: HOLDFAST_SEED={seed} \
             cargo test -p holdfast-memory --test it {test}",
            seed = self.seed,
            test = self.test
        );
    }
}
