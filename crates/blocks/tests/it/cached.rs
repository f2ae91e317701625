//! Files of which one is cached.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use holdfast_blocks::{AttachCacheError, BlockCache, CacheSpec, CachedFiles};
use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Operation, Random};
use holdfast_io::{Files, OpenFile, OpenHow};
use holdfast_memory::{Area, AreaSpec, Medium, Region};

use crate::common::{BLOCK, IDENTITY, for_seeds, path_of, shm};

const HOME: &str = "home";

/// Cells of the caches in these tests: two buckets.
const CELLS: usize = 32;

fn create_cache(medium: &Medium) -> Arc<BlockCache> {
    let spec = CacheSpec { bytes: (CELLS * BLOCK) as u64, identity: IDENTITY };
    Arc::new(BlockCache::create(medium, &spec).unwrap())
}

fn attach(medium: &Medium) -> Arc<BlockCache> {
    Arc::new(BlockCache::attach(medium, IDENTITY).unwrap())
}

fn writable() -> OpenHow {
    OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() }
}

/// Files with a home of so many bytes, none of them zero.
fn home(bytes: usize) -> (FakeFiles, Vec<u8>) {
    let files = FakeFiles::new(1);
    let mut content = vec![0; bytes];
    Random::new(bytes as u64).fill(&mut content);
    let file = files.open(Path::new(HOME), writable()).unwrap();
    file.write_all_at(&content, 0).unwrap();
    (files, content)
}

fn cached(files: &FakeFiles, cache: &Arc<BlockCache>) -> CachedFiles {
    pledged(files, cache, 1)
}

fn pledged(files: &FakeFiles, cache: &Arc<BlockCache>, pledge: u64) -> CachedFiles {
    CachedFiles::new(Arc::new(files.clone()), HOME, Arc::clone(cache), pledge).unwrap()
}

fn open(files: &dyn Files) -> Arc<dyn OpenFile> {
    files.open(Path::new(HOME), OpenHow { write: true, ..OpenHow::default() }).unwrap()
}

fn read(file: &dyn OpenFile, offset: usize, bytes: usize) -> Vec<u8> {
    let mut found = vec![0xaa; bytes];
    let count = file.read_full_at(&mut found, offset as u64).unwrap();
    found.truncate(count);
    found
}

/// Hits, misses, damaged entries, blocks held.
fn counters(medium: &Medium) -> [u64; 4] {
    let counts = BlockCache::observe(medium).unwrap();
    [counts.hits, counts.misses, counts.damaged, counts.held_bytes / BLOCK as u64]
}

/// A cache that has met the first ten blocks of a home, all of it that there is.
fn warmed(files: &FakeFiles, medium: &Medium) -> CachedFiles {
    let cached_files = cached(files, &create_cache(medium));
    read(&*open(&cached_files), 0, 10 * BLOCK);
    cached_files
}

/// Changes the home at random, and the vector likewise.
fn change(random: &mut Random, file: &dyn OpenFile, model: &mut Vec<u8>) {
    let (size, blocks) = (model.len(), 60);
    let offset = random.below(size as u64 + 5000) as usize;
    let bytes = 1 + random.below(5 * BLOCK as u64) as usize;
    let (offset, bytes) = match random.chance(50) {
        true => (offset / BLOCK * BLOCK, bytes.next_multiple_of(BLOCK)),
        false => (offset, bytes),
    };
    let end = offset + bytes;
    match random.below(12) {
        0 => {
            let bytes = random.below(blocks * BLOCK as u64) as usize;
            file.set_len(bytes as u64).unwrap();
            model.resize(bytes, 0);
        }
        1 => {
            file.punch(offset as u64, bytes as u64).unwrap();
            model[offset.min(size)..end.min(size)].fill(0);
        }
        2 => file.sync_data().unwrap(),
        _ => {
            let mut content = vec![0; bytes];
            random.fill(&mut content);
            match random.chance(20) {
                true => assert_eq!(file.write_through_at(&content, offset as u64).unwrap(), bytes),
                false => file.write_all_at(&content, offset as u64).unwrap(),
            }
            model.resize(size.max(end), 0);
            model[offset..end].copy_from_slice(&content);
        }
    }
}

#[test]
fn random_use_reads_what_the_home_has() {
    for_seeds("random_use_reads_what_the_home_has", 30, |_, random| {
        let (_folder, medium) = shm();
        let (files, mut model) = home(40 * BLOCK + 100);
        let mut cached_files = cached(&files, &create_cache(&medium));
        for _ in 0..150 {
            let file = open(&cached_files);
            change(random, &*file, &mut model);
            for _ in 0..3 {
                let offset = random.below(model.len() as u64 + BLOCK as u64) as usize;
                let bytes = random.below(10 * BLOCK as u64) as usize;
                let end = (offset + bytes).min(model.len());
                let expected = model.get(offset..end).unwrap_or_default();
                assert!(read(&*file, offset, bytes) == expected, "{bytes} bytes from {offset}");
            }
            if random.chance(5) {
                // As a death would, or properly.
                if random.chance(50) {
                    cached_files.close().unwrap();
                }
                drop((file, cached_files));
                cached_files = cached(&files, &attach(&medium));
            }
        }
        let [hits, _, damaged, held] = counters(&medium);
        assert!(hits > 100, "{hits} hits");
        assert_eq!(damaged, 0);
        assert!(held <= CELLS as u64, "{held} held");
    });
}

#[test]
fn a_block_is_read_from_the_home_once_and_counted() {
    let (_folder, medium) = shm();
    let (files, content) = home(10 * BLOCK);
    let cached_files = cached(&files, &create_cache(&medium));
    let file = open(&cached_files);
    assert!(read(&*file, 100, 3 * BLOCK) == content[100..100 + 3 * BLOCK]);
    assert_eq!(counters(&medium), [0, 4, 0, 4]);
    // The home fails from here on.
    for skip in 0..20 {
        files.fail(Fault { operation: Operation::Read, skip, effect: Effect::Errno(EIO) });
    }
    assert!(read(&*file, 0, 4 * BLOCK) == content[..4 * BLOCK]);
    assert_eq!(counters(&medium), [4, 4, 0, 4]);
    let refused = file.read_at(&mut [0; BLOCK], 5 * BLOCK as u64).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(EIO));
}

#[test]
fn what_is_written_is_read_without_the_home() {
    let (_folder, medium) = shm();
    let (files, _) = home(10 * BLOCK);
    let cached_files = cached(&files, &create_cache(&medium));
    let file = open(&cached_files);
    file.write_all_at(&[7; 2 * BLOCK], 3 * BLOCK as u64).unwrap();
    files.fail(Fault { operation: Operation::Read, skip: 0, effect: Effect::Errno(EIO) });
    assert_eq!(read(&*file, 3 * BLOCK, 2 * BLOCK), [7; 2 * BLOCK]);
    assert_eq!(files.faults_fired(), 0);
}

#[test]
fn what_a_write_leaves_of_a_cached_block_is_read_without_the_home() {
    let (_folder, medium) = shm();
    let (files, mut content) = home(10 * BLOCK);
    let cached_files = cached(&files, &create_cache(&medium));
    let file = open(&cached_files);
    read(&*file, 0, 6 * BLOCK);
    for (offset, bytes) in [(100, 50), (BLOCK + 512, 2 * BLOCK), (4 * BLOCK - 1, 2)] {
        file.write_all_at(&vec![7; bytes], offset as u64).unwrap();
        content[offset..offset + bytes].fill(7);
    }
    let misses = counters(&medium)[1];
    assert!(read(&*file, 0, 6 * BLOCK) == content[..6 * BLOCK]);
    assert_eq!(counters(&medium)[1], misses);
    // Of this one nothing is known.
    file.write_all_at(&[7; 50], 8 * BLOCK as u64).unwrap();
    content[8 * BLOCK..8 * BLOCK + 50].fill(7);
    assert!(read(&*file, 8 * BLOCK, BLOCK) == content[8 * BLOCK..9 * BLOCK]);
    assert_eq!(counters(&medium)[1], misses + 1);
}

#[test]
fn a_write_that_fails_leaves_nothing_in_the_cache() {
    let (_folder, medium) = shm();
    let (files, mut content) = home(10 * BLOCK);
    let cached_files = cached(&files, &create_cache(&medium));
    let file = open(&cached_files);
    read(&*file, 0, 10 * BLOCK);
    files.fail(Fault { operation: Operation::Write, skip: 0, effect: Effect::Errno(EIO) });
    file.write_at(&[7; 2 * BLOCK], 3 * BLOCK as u64).unwrap_err();
    assert_eq!(counters(&medium)[3], 8);
    assert!(read(&*file, 0, 10 * BLOCK) == content);
    files.fail(Fault { operation: Operation::Write, skip: 0, effect: Effect::Short });
    let written = file.write_at(&[7; 3 * BLOCK], 2 * BLOCK as u64).unwrap();
    assert!(written < 3 * BLOCK);
    content[2 * BLOCK..2 * BLOCK + written].fill(7);
    assert!(read(&*file, 0, 10 * BLOCK) == content);
}

#[test]
fn a_cache_is_warm_after_a_death_and_after_a_close() {
    for closes in [false, true] {
        let (_folder, medium) = shm();
        let (files, content) = home(10 * BLOCK);
        let first = warmed(&files, &medium);
        if closes {
            first.close().unwrap();
        }
        drop(first);
        let second = cached(&files, &attach(&medium));
        assert!(read(&*open(&second), 0, 10 * BLOCK) == content);
        assert_eq!(counters(&medium), [10, 10, 0, 10], "closed: {closes}");
    }
}

#[test]
fn a_home_that_was_changed_after_a_close_finds_an_empty_cache() {
    let (_folder, medium) = shm();
    let (files, _) = home(10 * BLOCK);
    let first = warmed(&files, &medium);
    first.close().unwrap();
    drop(first);
    open(&files).write_all_at(&[9; BLOCK], 3 * BLOCK as u64).unwrap();
    let second = cached(&files, &attach(&medium));
    assert_eq!(counters(&medium)[3], 0);
    assert_eq!(read(&*open(&second), 3 * BLOCK, BLOCK), [9; BLOCK]);
}

#[test]
fn another_file_finds_an_empty_cache() {
    for closes in [false, true] {
        let (_folder, medium) = shm();
        let (files, _) = home(10 * BLOCK);
        let first = warmed(&files, &medium);
        if closes {
            first.close().unwrap();
        }
        drop(first);
        files.rename(Path::new(HOME), Path::new("old")).unwrap();
        let file = files.open(Path::new(HOME), writable()).unwrap();
        file.write_all_at(&[9; 10 * BLOCK], 0).unwrap();
        let second = cached(&files, &attach(&medium));
        assert_eq!(counters(&medium)[3], 0, "closed: {closes}");
        assert_eq!(read(&*open(&second), 0, BLOCK), [9; BLOCK]);
    }
}

#[test]
fn after_a_death_only_who_has_the_pledge_finds_a_warm_cache() {
    for (second_pledge, held) in [(1, 10), (2, 0)] {
        let (_folder, medium) = shm();
        let (files, content) = home(10 * BLOCK);
        let first = warmed(&files, &medium);
        drop(first);
        let second = pledged(&files, &attach(&medium), second_pledge);
        assert_eq!(counters(&medium)[3], held, "pledge {second_pledge}");
        assert!(read(&*open(&second), 0, 10 * BLOCK) == content);
    }
}

#[test]
fn after_a_close_a_new_pledge_finds_a_warm_cache_and_counts_from_then_on() {
    let (_folder, medium) = shm();
    let (files, _) = home(10 * BLOCK);
    let first = warmed(&files, &medium);
    first.close().unwrap();
    drop(first);
    for (pledge, held) in [(2, 10), (2, 10), (1, 0)] {
        drop(pledged(&files, &attach(&medium), pledge));
        assert_eq!(counters(&medium)[3], held, "pledge {pledge}");
    }
}

#[test]
fn a_damaged_cell_or_entry_is_read_from_the_home() {
    for_seeds("a_damaged_cell_or_entry_is_read_from_the_home", 200, |_, random| {
        let (_folder, medium) = shm();
        let (files, content) = home(10 * BLOCK);
        let first = warmed(&files, &medium);
        drop(first);
        let mut bytes = std::fs::read(path_of(&medium)).unwrap();
        let area = 3 * 4096;
        for _ in 0..=random.below(5) {
            // The home's record, the entries, the cells.
            let (from, length) =
                [(512, 600), (4096, 16 * CELLS), (8192, CELLS * BLOCK)][random.below(3) as usize];
            bytes[area + from + random.below(length as u64) as usize] ^= 1 << random.below(8);
        }
        std::fs::write(path_of(&medium), &bytes).unwrap();
        let second = cached(&files, &attach(&medium));
        assert!(read(&*open(&second), 0, 10 * BLOCK) == content);
        assert!(read(&*open(&second), 0, 10 * BLOCK) == content, "and is kept again");
    });
}

#[test]
fn a_cached_file_keeps_its_name() {
    let (_folder, medium) = shm();
    let (files, content) = home(2 * BLOCK);
    let cached_files = cached(&files, &create_cache(&medium));
    cached_files.open(Path::new("other"), writable()).unwrap();
    let (home, other, third) = (Path::new(HOME), Path::new("other"), Path::new("third"));
    let refused = [
        cached_files.rename(home, third),
        cached_files.rename(other, home),
        cached_files.exchange(home, other),
        cached_files.exchange(other, home),
        cached_files.link(home, third),
        cached_files.remove_file(home),
    ];
    for outcome in refused {
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::Unsupported);
    }
    cached_files.rename(other, third).unwrap();
    assert!(read(&*open(&cached_files), 0, 2 * BLOCK) == content);
}

#[test]
fn files_beside_the_home_are_not_cached() {
    let (_folder, medium) = shm();
    let (files, _) = home(2 * BLOCK);
    let cached_files = cached(&files, &create_cache(&medium));
    let other = cached_files.open(Path::new("other"), writable()).unwrap();
    other.write_all_at(&[3; BLOCK], 0).unwrap();
    assert_eq!(read(&*other, 0, BLOCK), [3; BLOCK]);
    assert_eq!(counters(&medium), [0, 0, 0, 0]);
}

#[test]
fn what_is_no_cache_of_this_owner_is_told() {
    let (_folder, medium) = shm();
    let spec = AreaSpec { content: *b"ANOTHER\0", identity: IDENTITY, bytes: 8192 };
    drop(Area::create(&medium, &spec, |_| ()).unwrap());
    let refusals =
        [BlockCache::attach(&medium, IDENTITY).map(drop), BlockCache::observe(&medium).map(drop)];
    for refused in refusals {
        let told =
            matches!(refused, Err(AttachCacheError::NoCache { found }) if found == *b"ANOTHER\0");
        assert!(told, "{refused:?}");
    }
    Region::remove(&medium).unwrap();

    drop(create_cache(&medium));
    let refused = BlockCache::attach(&medium, [9; 16]);
    assert!(matches!(refused, Err(AttachCacheError::OtherOwner { found: IDENTITY })));
    let mut bytes = std::fs::read(path_of(&medium)).unwrap();
    bytes[3 * 4096 + 16] ^= 1;
    std::fs::write(path_of(&medium), &bytes).unwrap();
    let refused = BlockCache::attach(&medium, IDENTITY);
    assert!(matches!(refused, Err(AttachCacheError::Damaged)), "{refused:?}");
}

#[test]
fn threads_that_read_and_write_the_same_blocks_leave_the_cache_as_the_home_is() {
    for_seeds(
        "threads_that_read_and_write_the_same_blocks_leave_the_cache_as_the_home_is",
        5,
        |seed, _| {
            let (_folder, medium) = shm();
            let (files, content) = home(12 * BLOCK);
            let cached_files = cached(&files, &create_cache(&medium));
            let work = |thread: u64| {
                let (file, mut random) = (open(&cached_files), Random::new(seed * 10 + thread));
                for _ in 0..300 {
                    let offset = random.below(10) * BLOCK as u64;
                    if random.chance(40) {
                        let bytes = [random.any() as u8; 2 * BLOCK];
                        let from = random.below(2) * 1000;
                        file.write_all_at(&bytes[from as usize..], offset + from).unwrap();
                    } else {
                        read(&*file, offset as usize, 2 * BLOCK);
                    }
                }
            };
            thread::scope(|scope| {
                for thread in 0..4 {
                    scope.spawn(move || work(thread));
                }
            });
            let through_cache = read(&*open(&cached_files), 0, content.len());
            assert!(through_cache == read(&*open(&files), 0, content.len()));
        },
    );
}
