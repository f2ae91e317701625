//! Pages of large values that snapshots showed become free again, however fast others come.

use std::collections::BTreeMap;

use holdfast_io::fake::Random;
use holdfast_pages::Keep;
use holdfast_store::Durability::Memory;
use holdfast_store::{Config, Service, Snapshot, Store, Tree, UNFREED_PAGES_MAX};

use crate::power::with_seeds;
use crate::support::{config, machine, place, settle, sound};

const KEYS: u64 = 6;
const CHANGES: u64 = 1200;
/// Bytes of a value that a page has, at least, with the pages that are not full.
const PAGE_BYTES: u64 = 6000;
/// Of the trees themselves, and of values on their way.
const OTHER_PAGES: u64 = 64;

/// Values there are, by key: how many bytes each has.
type Live = BTreeMap<u64, u64>;

fn small(seed: u64) -> Store {
    let config = Config { keep: Keep::Repair, ..config() };
    Store::open_at(place(&machine(seed)), &config).expect("the store opens").0
}

/// Replaces a value or deletes it, in one of the ways that there are; or does so and aborts.
fn change(store: &Store, tree: &Tree, live: &mut Live, random: &mut Random) {
    let key = random.below(KEYS);
    let bytes = (!random.chance(15)).then(|| 20_000 + random.below(50_000));
    let mut one = if random.chance(30) { store.begin_redo_only() } else { store.begin() };
    match bytes {
        Some(bytes) => one.put(tree, &[key as u8], &vec![7; bytes as usize]).expect("room"),
        None => drop(one.delete(tree, &[key as u8]).expect("pages")),
    }
    if random.chance(10) {
        return one.abort().expect("room");
    }
    one.commit(Memory).expect("a log");
    match bytes {
        Some(bytes) => drop(live.insert(key, bytes)),
        None => drop(live.remove(&key)),
    }
}

/// A life in which almost nothing is freed but by those who replace. How many values were.
fn bounded(seed: u64) -> u64 {
    let (store, mut random, mut live) = (small(seed), Random::new(seed), Live::new());
    let tree = store.tree("values").expect("a tree");
    let (mut live_max, mut held_max) = (0, 0);
    let mut taken: Vec<Snapshot<'_>> = Vec::new();
    for _ in 0..CHANGES {
        match random.below(20) {
            0..3 if taken.len() < 3 => taken.push(store.snapshot().expect("a log")),
            3..6 if !taken.is_empty() => {
                taken.swap_remove(random.below(taken.len() as u64) as usize);
            }
            6 if random.chance(20) => drop(store.step(Service::Undo).expect("room")),
            _ => {}
        }
        change(&store, &tree, &mut live, &mut random);
        let stat = store.stat();
        live_max = live_max.max(live.values().sum());
        held_max = held_max.max(stat.snapshot_bytes);
        let bound = (live_max + held_max) / PAGE_BYTES + UNFREED_PAGES_MAX + OTHER_PAGES;
        assert!(stat.pages <= bound, "{} pages, of which there are {bound} at most", stat.pages);
    }
    taken.clear();
    settle(&store);
    let (stat, found) = (store.stat(), sound(&store));
    assert_eq!((stat.unfreed_pages, stat.snapshot_bytes, found.unreached), (0, 0, vec![]));
    assert_eq!(stat.free_pages + found.pages, stat.pages);
    CHANGES
}

#[test]
fn pages_are_bounded_by_what_lives_what_snapshots_show_and_what_may_wait() {
    with_seeds(1..7, "unfreed::pages_are_bounded", bounded);
}

#[test]
fn what_the_last_snapshot_held_is_free_a_few_steps_after_it() {
    let store = small(1);
    let tree = store.tree("values").expect("a tree");
    let put = |value| {
        let mut one = store.begin();
        one.put(&tree, b"key", &vec![value; 30_000]).expect("room");
        one.commit(Memory).expect("a log");
    };
    put(1);
    let snapshot = store.snapshot().expect("a log");
    (0..200).for_each(|_| put(2));
    assert_eq!(store.stat().unfreed_pages, 0, "the snapshot may show them");
    drop(snapshot);
    let waiting = store.stat().unfreed_pages;
    assert_eq!((waiting, store.stat().snapshot_bytes), (800, 0));
    for _ in 0..3 {
        assert!(store.step(Service::Undo).is_ok());
    }
    assert_eq!(store.stat().unfreed_pages, 0);
    assert_eq!(sound(&store).unreached, vec![]);
}

#[test]
fn who_replaces_a_value_frees_more_of_what_waits_than_it_leaves_behind() {
    let store = small(2);
    let tree = store.tree("values").expect("a tree");
    let put = |value, bytes| {
        let mut one = store.begin();
        one.put(&tree, b"key", &vec![value; bytes]).expect("room");
        one.commit(Memory).expect("a log");
    };
    let snapshot = store.snapshot().expect("a log");
    (0..400).for_each(|_| put(1, 40_000));
    drop(snapshot);
    let (mut waiting, _held) = (store.stat().unfreed_pages, store.snapshot().expect("a log"));
    assert!(waiting > UNFREED_PAGES_MAX);
    while waiting > UNFREED_PAGES_MAX {
        put(2, 40_000);
        let now = store.stat().unfreed_pages;
        assert!(now + 10 <= waiting, "{now} wait, and {waiting} did before");
        waiting = now;
    }
}
