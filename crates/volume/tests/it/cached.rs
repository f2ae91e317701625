//! A disk whose home has a block cache: as without one, and warm after any death.

use std::cell::Cell;
use std::sync::Arc;

use holdfast_blocks::{BlockCache, CacheCounts, CacheSpec, CachedFiles};
use holdfast_io::fake::Operation;
use holdfast_io::{Blocks, OneFile};
use holdfast_memory::Medium;
use tempfile::TempDir;

use crate::block::live;
use crate::disk::{Disk, DiskWorld};
use crate::seeds::for_each_seed;
use crate::world::IDENTITY;

/// More than a disk of these tests has.
const CACHE_BYTES: u64 = 1 << 20;

/// Memory for a cache, beside the log's; gone with the test.
pub(crate) struct Cache {
    _folder: TempDir,
    medium: Medium,
    pledge: Cell<u64>,
}

impl Cache {
    pub(crate) fn new() -> Cache {
        let folder = tempfile::tempdir_in("/dev/shm").expect("shared memory");
        let medium = Medium::Shm { path: folder.path().join("cache") };
        let spec = CacheSpec { bytes: CACHE_BYTES, identity: IDENTITY };
        drop(BlockCache::create(&medium, &spec).expect("a new cache"));
        Cache { _folder: folder, medium, pledge: Cell::new(1) }
    }

    /// Puts it before a home, as its last user left it.
    pub(crate) fn before(&self, home: Arc<OneFile>) -> CachedFiles {
        let cache = Arc::new(BlockCache::attach(&self.medium, IDENTITY).expect("a whole cache"));
        CachedFiles::new(home, OneFile::NAME, cache, self.pledge.get()).expect("a home")
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        BlockCache::observe(&self.medium).expect("a whole cache")
    }
}

fn cache_of(world: &DiskWorld) -> &Cache {
    world.1.as_ref().expect("a world with a cache")
}

fn fill(disk: &Disk, byte: u8, offset: u64, bytes: usize) {
    Blocks::write(&**disk, &vec![byte; bytes], offset).expect("room");
}

/// What the disk holds, and how often the home was read to tell.
fn read_all(world: &DiskWorld, disk: &Disk) -> (Vec<u8>, u64) {
    let reads = || world.0.files.calls(Operation::Read);
    let before = reads();
    let contents = disk.contents();
    (contents, reads() - before)
}

#[test]
fn a_disk_with_a_cache_holds_what_was_written_last_through_drains_cleaning_and_deaths() {
    for_each_seed("cached::a_disk_with_a_cache", &[], 0..100, |seed| {
        let world = DiskWorld::cached(seed);
        live(&world, seed);
        let CacheCounts { hits, damaged, .. } = cache_of(&world).counts();
        assert!(hits > 20, "seed {seed}: {hits} hits show nothing");
        assert_eq!(damaged, 0, "seed {seed}");
    });
}

#[test]
fn after_a_death_every_block_is_found_without_the_home() {
    let world = DiskWorld::cached(1);
    let disk = world.open().expect("a new volume");
    let (_, reads) = read_all(&world, &disk);
    assert!(reads > 0, "an empty cache asks the home");
    // Home, on its way there, and in memory alone.
    fill(&disk, 7, 4096, 8192);
    disk.clean().expect("a sound disk");
    fill(&disk, 8, 5000, 10_000);
    disk.drain().expect("a sound disk");
    fill(&disk, 9, 40_960, 4096);
    let expected = disk.contents();
    drop(disk);

    let disk = world.open().expect("a volume whose process died");
    let (found, reads) = read_all(&world, &disk);
    assert!(found == expected);
    assert_eq!(reads, 0);
    disk.clean().expect("a sound disk");
    drop(disk);
    let disk = world.open().expect("a volume whose process died");
    let (found, reads) = read_all(&world, &disk);
    assert!(found == expected);
    assert_eq!(reads, 0, "of what the cleaner wrote, too");
}

/// A life with a death, one without the cache, and one with it again. What is on the disk then, and
/// what should be.
fn left_out(world: &mut DiskWorld, second_pledge: u64) -> (Vec<u8>, Vec<u8>) {
    let disk = world.open().expect("a new volume");
    read_all(world, &disk);
    drop(disk);
    let cache = world.1.take().expect("a world with a cache");
    let disk = world.open().expect("a volume whose process died");
    fill(&disk, 7, 4096, 8192);
    disk.clean().expect("a sound disk");
    let expected = disk.contents();
    drop(disk);
    cache.pledge.set(second_pledge);
    world.1 = Some(cache);
    (world.open().expect("a volume whose process died").contents(), expected)
}

#[test]
fn a_cache_that_was_left_out_for_a_life_is_not_believed() {
    let (found, expected) = left_out(&mut DiskWorld::cached(1), 2);
    assert!(found == expected);
}

/// The test above must notice a pledge that was kept although the cache was left out.
#[test]
fn canary_a_pledge_that_was_not_kept_shows_what_was() {
    let (found, expected) = left_out(&mut DiskWorld::cached(1), 1);
    assert!(found != expected);
}
