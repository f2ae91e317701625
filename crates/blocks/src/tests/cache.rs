//! A cache that is cut off after any store, of a process or of the system; and offers that come too
//! late.

use holdfast_io::fake::Random;

use super::recorded::{Recorded, Step, after_process, after_system};
use crate::cache::{Block, Cache, CacheLayout};
use crate::header::BLOCK_BYTES;

const SEED: u32 = 77;

/// One bucket, so that cells are used again and again.
const LAYOUT: CacheLayout = CacheLayout { buckets: 1 };

/// Blocks of the home: more than there are cells.
const BLOCKS: u64 = 20;

fn fresh() -> Cache<Recorded> {
    let memory = Recorded::zeros(LAYOUT.area_bytes());
    LAYOUT.format(&memory, SEED);
    Cache::open(memory, LAYOUT, SEED, false)
}

fn full_of(number: u8) -> Box<Block> {
    Box::new([number; BLOCK_BYTES])
}

/// The byte that a block is full of, if the cache has it.
fn found<M: crate::memory::Memory>(cache: &Cache<M>, block: u64) -> Option<u8> {
    let mut content = full_of(0xff);
    cache.look(block, &mut content).ok()?;
    assert_eq!(*content, *full_of(content[0]), "block {block} is of one piece");
    Some(content[0])
}

/// Reads a block through the cache, from a home where each block is full of one number.
fn read(cache: &Cache<Recorded>, home: &[u8], block: u64) -> u8 {
    let mut content = full_of(0);
    if let Err(miss) = cache.look(block, &mut content) {
        content = full_of(home[block as usize]);
        cache.fill(miss, block, &*content);
    }
    content[0]
}

/// What the home holds between two stores: of a block that is being changed nothing is known.
type HomeState = Vec<Option<u8>>;

/// What a user does to cache and home, store by store.
struct History {
    before: Vec<u8>,
    steps: Vec<Step>,
    /// From which step on the home is as said; and what a sync had covered then.
    homes: Vec<(usize, HomeState, HomeState)>,
}

impl History {
    /// The home after so many steps, and what of it survives the system.
    fn home_at(&self, end: usize) -> (&HomeState, &HomeState) {
        let (_, now, durable) = self.homes.iter().rev().find(|(from, ..)| *from <= end).unwrap();
        (now, durable)
    }
}

/// Reads, writes and syncs at random.
fn history(seed: u64) -> History {
    let mut random = Random::new(seed);
    let cache = fresh();
    let mut home = vec![1; BLOCKS as usize];
    let all = |home: &[u8]| home.iter().map(|number| Some(*number)).collect::<HomeState>();
    cache.memory().take_steps();
    let before = cache.memory().image();
    let (mut steps, mut durable) = (Vec::new(), all(&home));
    let mut homes = vec![(0, all(&home), durable.clone())];
    for number in 2..60_u8 {
        let block = random.below(BLOCKS);
        match random.below(10) {
            0 => {
                let epoch = cache.begin_sync();
                durable = all(&home);
                homes.push((steps.len(), all(&home), durable.clone()));
                cache.synced(epoch);
            }
            1..=4 => {
                let end = (block + 1 + random.below(3)).min(BLOCKS);
                let change = cache.change(block..end);
                steps.extend(cache.memory().take_steps());
                let mut torn = all(&home);
                torn[block as usize..end as usize].fill(None);
                // A system that dies loses these writes, or has them in part.
                durable[block as usize..end as usize].fill(None);
                homes.push((steps.len(), torn, durable.clone()));
                home[block as usize..end as usize].fill(number);
                // The home is whole before anything else is stored.
                steps.push(Step::Persist { at: 0, bytes: 0 });
                homes.push((steps.len(), all(&home), durable.clone()));
                (block..end).for_each(|block| change.fill(block, &*full_of(number)));
            }
            _ => assert_eq!(read(&cache, &home, block), home[block as usize]),
        }
        steps.extend(cache.memory().take_steps());
    }
    History { before, steps, homes }
}

/// The first block that a cache found in `image` has, and the home does not.
fn fault_of(image: Vec<u8>, home: &HomeState, outlives_system: bool) -> Option<u64> {
    let cache = Cache::open(Recorded::of(image), LAYOUT, SEED, outlives_system);
    (0..BLOCKS).find(|block| {
        let found = found(&cache, *block);
        found.is_some() && found != home[*block as usize]
    })
}

#[test]
fn a_process_that_dies_after_any_store_leaves_only_what_the_home_has() {
    for seed in 1..=10 {
        let history = history(seed);
        for end in 0..=history.steps.len() {
            let image = after_process(&history.before, &history.steps[..end]);
            let fault = fault_of(image, history.home_at(end).0, false);
            assert_eq!(fault, None, "seed {seed}, after {end} of {} steps", history.steps.len());
        }
    }
}

#[test]
fn a_system_that_dies_after_any_store_leaves_only_what_a_sync_covered() {
    for seed in 1..=10 {
        let (history, mut random) = (history(seed), Random::new(seed));
        for end in 0..=history.steps.len() {
            let image = after_system(&history.before, &history.steps[..end], &mut random);
            let fault = fault_of(image, history.home_at(end).1, true);
            assert_eq!(fault, None, "seed {seed}, after {end} of {} steps", history.steps.len());
        }
    }
}

#[test]
fn a_cache_that_takes_no_notice_of_syncs_is_caught() {
    let faults = (1..=10).filter(|seed| {
        let (history, end) = (history(*seed), history(*seed).steps.len());
        let image = after_process(&history.before, &history.steps);
        fault_of(image, history.home_at(end).1, false).is_some()
    });
    assert_ne!(faults.count(), 0);
}

#[test]
fn a_home_that_is_changed_without_a_word_is_caught() {
    let history = history(1);
    let end = history.steps.len();
    let image = after_process(&history.before, &history.steps);
    let changed = history.home_at(end).0.iter().map(|number| number.map(|it| it + 100)).collect();
    assert!(fault_of(image, &changed, false).is_some());
}

#[test]
fn what_was_synced_is_still_there_after_the_system_died() {
    let cache = fresh();
    let mut home = vec![1; BLOCKS as usize];
    (0..4).for_each(|block| assert_eq!(read(&cache, &home, block), 1));
    home[2] = 9;
    cache.change(2..3).fill(2, &*full_of(9));
    let epoch = cache.begin_sync();
    cache.synced(epoch);
    read(&cache, &home, 5);
    let after = Cache::open(Recorded::of(cache.memory().image()), LAYOUT, SEED, true);
    let kept: Vec<_> = (0..6).map(|block| found(&after, block)).collect();
    assert_eq!(kept, [Some(1), Some(1), Some(9), Some(1), None, None]);
}

#[test]
fn after_a_sync_that_failed_no_other_covers_anything() {
    let (cache, home) = (fresh(), vec![1; BLOCKS as usize]);
    read(&cache, &home, 3);
    cache.begin_sync();
    cache.sync_failed();
    let epoch = cache.begin_sync();
    cache.synced(epoch);
    let after = Cache::open(Recorded::of(cache.memory().image()), LAYOUT, SEED, true);
    assert_eq!(found(&after, 3), None);
}

#[test]
fn an_older_sync_that_returns_late_uncovers_nothing() {
    let (cache, home) = (fresh(), vec![1; BLOCKS as usize]);
    let older = cache.begin_sync();
    read(&cache, &home, 3);
    let newer = cache.begin_sync();
    cache.synced(newer);
    cache.synced(older);
    let after = Cache::open(Recorded::of(cache.memory().image()), LAYOUT, SEED, true);
    assert_eq!(found(&after, 3), Some(1));
}

#[test]
fn a_block_that_was_read_before_a_change_is_not_kept_after_it() {
    let cache = fresh();
    let miss = cache.look(3, &mut full_of(0)).unwrap_err();
    drop(cache.change(3..4));
    cache.fill(miss, 3, &*full_of(1));
    assert_eq!(found(&cache, 3), None);
}

#[test]
fn a_block_that_is_read_during_a_change_is_not_kept() {
    let cache = fresh();
    for blocks in [3..4, 0..u64::MAX] {
        let change = cache.change(blocks);
        let miss = cache.look(3, &mut full_of(0)).unwrap_err();
        cache.fill(miss, 3, &*full_of(1));
        assert_eq!(found(&cache, 3), None);
        drop(change);
        cache.fill(miss, 3, &*full_of(1));
        assert_eq!(found(&cache, 3), None);
    }
}

#[test]
fn of_two_changes_at_once_neither_leaves_what_it_wrote() {
    let cache = Cache::open(
        {
            let memory = Recorded::zeros(CacheLayout { buckets: 8 }.area_bytes());
            CacheLayout { buckets: 8 }.format(&memory, SEED);
            memory
        },
        CacheLayout { buckets: 8 },
        SEED,
        false,
    );
    for (one, other) in [(3..4, 2..5), (3..4, 0..u64::MAX), (0..u64::MAX, 3..4)] {
        let first = cache.change(one);
        let second = cache.change(other);
        first.fill(3, &*full_of(1));
        drop(first);
        second.fill(3, &*full_of(2));
        drop(second);
        assert_eq!(found(&cache, 3), None);
    }
    let alone = cache.change(3..4);
    let elsewhere = cache.change(7..8);
    alone.fill(3, &*full_of(1));
    drop((alone, elsewhere));
    assert_eq!(found(&cache, 3), Some(1));
}

#[test]
fn blocks_that_are_wanted_again_and_again_outstay_a_scan() {
    let (cache, home) = (fresh(), vec![1; 2000]);
    for scanned in 100..1000 {
        read(&cache, &home, scanned);
        for hot in 0..8 {
            let was_there = found(&cache, hot).is_some();
            assert!(was_there || scanned < 102, "block {hot} at {scanned}");
            read(&cache, &home, hot);
        }
    }
}
