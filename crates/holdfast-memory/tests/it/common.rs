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
    RegionSpec {
        ring_bytes: RING_BYTES,
        roster_bytes: 1000,
        identity: IDENTITY,
    }
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
    (lsn..lsn + bytes)
        .map(|at| (at ^ (at >> 8) ^ 0x5a) as u8)
        .collect()
}

/// Makes everything published durable and gives it back.
pub(crate) fn empty(region: &Region) {
    let tail = region.marks().tail;
    region.set_durable(tail);
    region.release(tail);
}
