//! Space comes back: what a store takes follows what is in it, however long it is used.

use std::ops::Bound;

use holdfast_io::fake::FakeFiles;
use holdfast_store::Durability::{Disk, Memory};
use holdfast_store::{Config, Direction, Keep, Service, Store, TransactionError, Tree};

use crate::life::{config_of, work};
use crate::model::Model;
use crate::support::{config, cut, factor, machine, open, place, settle, sound};

/// Bytes of a value here: 100 keys and their values fill about two pages.
const VALUE: [u8; 100] = [7; 100];

fn key(at: u64) -> [u8; 8] {
    at.to_be_bytes()
}

fn put_all(store: &Store, tree: &Tree, keys: impl Iterator<Item = u64>) {
    let mut one = store.begin();
    keys.for_each(|at| one.put(tree, &key(at), &VALUE).expect("room"));
    one.commit(Memory).expect("a log");
}

fn delete_all(store: &Store, tree: &Tree, keys: impl Iterator<Item = u64>) {
    let mut one = store.begin();
    keys.for_each(|at| assert!(one.delete(tree, &key(at)).expect("pages")));
    one.commit(Memory).expect("a log");
}

/// Pages that trees have; every other one is free.
fn pages(store: &Store) -> u64 {
    settle(store);
    let found = sound(store);
    assert_eq!(found.unreached, vec![]);
    found.pages
}

/// Nodes that merge in a life as those that power cuts, comparisons and restarts are tested with.
fn merged_in_a_life(seed: u64) -> u64 {
    let (files, mut model) = (machine(seed), Model::default());
    let (store, _) = Store::open_at(place(&files), &config_of(seed)).expect("the store opens");
    let tree = store.tree("accounts").expect("a tree");
    let end = work(&store, &tree, &mut model, seed, 300);
    drop(end.expect("the machine is well"));
    store.stat().merged_nodes
}

#[test]
fn leaves_merge_in_the_lives_that_are_cut() {
    let merged: Vec<_> = (1..=16).map(merged_in_a_life).collect();
    assert!(merged.iter().sum::<u64>() > 30, "{merged:?}");
    assert!(merged.iter().filter(|merged| **merged > 0).count() > 8, "{merged:?}");
}

#[test]
fn a_queue_stays_as_small_as_what_is_in_it() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("queue").expect("a tree");
    put_all(&store, &tree, 0..300);
    let before = pages(&store);
    for at in 0..60 * factor() {
        let at = at * 50;
        put_all(&store, &tree, 300 + at..350 + at);
        delete_all(&store, &tree, at..at + 50);
        if at % 10 == 0 {
            settle(&store);
        }
    }
    let (after, stat) = (pages(&store), store.stat());
    assert!(after <= before + 3, "{before} pages became {after}");
    assert!(stat.pages <= 4 * before, "{} pages were ever given", stat.pages);
}

#[test]
fn keys_that_come_and_go_leave_no_pages() {
    let (store, _) = open(&machine(2));
    let tree = store.tree("churn").expect("a tree");
    let before = pages(&store);
    for round in 0..6_u64 {
        for part in 0..20 {
            put_all(&store, &tree, (0..100).map(|at| (part * 100 + at) * 7919 % 2000));
        }
        settle(&store);
        let full = pages(&store);
        for part in 0..20 {
            delete_all(
                &store,
                &tree,
                (0..100).map(|at| (part * 100 + at) * (31 + round * 10) % 2000),
            );
        }
        assert!(full > before + 30, "{full} pages");
        assert!(pages(&store) <= before + 2, "{before} pages became {}", pages(&store));
    }
    let all = store.stat().pages;
    assert!(all < 100, "{all} pages were ever given");
}

#[test]
fn what_is_before_the_head_of_a_queue_is_not_walked_through() {
    let (store, _) = open(&machine(3));
    let tree = store.tree("queue").expect("a tree");
    for part in 0..40 {
        put_all(&store, &tree, part * 100..part * 100 + 100);
    }
    for part in 0..39 {
        delete_all(&store, &tree, part * 100..part * 100 + 100);
    }
    settle(&store);
    let found = sound(&store);
    assert!(found.ghosts == 0 && found.pages < 8, "{found:?}");
    let mut one = store.begin();
    let head = one.scan::<&[u8]>(&tree, .., Direction::Up).next();
    assert_eq!(head.expect("a key").expect("pages").0, key(3900));
}

#[test]
fn a_range_is_deleted_whole_or_not_at_all() {
    for is_redo_only in [false, true] {
        let (store, _) = open(&machine(4));
        let tree = store.tree("ranges").expect("a tree");
        for part in 0..10 {
            put_all(&store, &tree, part * 100..part * 100 + 100);
        }
        let begin = || if is_redo_only { store.begin_redo_only() } else { store.begin() };
        let full = pages(&store);
        let mut one = begin();
        let deleted = one.delete_range(&tree, key(100)..key(300)).expect("pages");
        assert_eq!(deleted, 200);
        one.abort().expect("room");
        assert_eq!(sound(&store).keys, 1001);
        let mut one = begin();
        assert!(one.delete(&tree, &key(150)).expect("pages"));
        assert_eq!(one.delete_range(&tree, key(100)..=key(300)).expect("pages"), 200);
        assert_eq!(one.delete_range(&tree, key(100)..=key(300)).expect("pages"), 0);
        let other = store.begin_impatient().insert(&tree, &key(200), b"");
        assert!(other.is_err(), "nobody else puts a key there");
        one.commit(Memory).expect("a log");
        assert_eq!(sound(&store).keys, 1001 - 201);
        assert!(pages(&store) < full);
    }
}

#[test]
fn who_wants_the_first_key_of_a_tree_locks_no_more_than_a_few() {
    let (store, _) = open(&machine(5));
    let tree = store.tree("queue").expect("a tree");
    put_all(&store, &tree, 0..50);
    let mut one = store.begin();
    let head = one.scan::<&[u8]>(&tree, .., Direction::Up).next();
    assert_eq!(head.expect("a key").expect("pages").0, key(0));
    let mut other = store.begin_impatient();
    assert!(other.delete(&tree, &key(1)).is_err());
    assert!(other.delete(&tree, &key(20)).expect("it is not locked"));
    other.abort().expect("room");
    drop(one);
    for direction in [Direction::Up, Direction::Down] {
        let mut one = store.begin();
        let all = one.scan::<&[u8]>(&tree, .., direction).map(|found| found.expect("pages").0);
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        assert!(all.into_iter().eq((0..50).map(key)));
    }
}

/// A store with two trees of some pages and large values, one of which is to go.
fn with_two_trees(files: &FakeFiles) -> (Store, [Tree; 2]) {
    let (store, _) = open(files);
    let trees = ["goes", "stays"].map(|name| store.tree(name).expect("a tree"));
    for part in 0..8 {
        trees.iter().for_each(|tree| put_all(&store, tree, part * 50..part * 50 + 50));
        let mut one = store.begin();
        one.put(&trees[0], &key(9000 + part), &[1; 20_000]).expect("room");
        one.commit(Disk).expect("a device");
    }
    (store, trees)
}

/// What the store has, once nothing is left to be done.
fn settled(mut store: Store) -> (Store, u64, u64) {
    settle(&store);
    store.reclaim().expect("the trees are sound");
    let found = sound(&store);
    assert_eq!(found.unreached, vec![]);
    (store, found.keys, found.pages)
}

#[test]
fn a_tree_that_is_dropped_is_gone_and_its_pages_are_free() {
    let (mut store, [goes, stays]) = with_two_trees(&machine(6));
    let full = pages(&store);
    assert!(store.drop_tree("goes").expect("room"));
    assert!(!store.drop_tree("goes").expect("room"));
    assert_eq!(store.tree_names().expect("pages"), ["stays"]);
    assert_eq!(store.find_tree("goes").expect("pages"), None);
    let mut one = store.begin();
    for refused in [
        one.get(&goes, &key(1)).err(),
        one.put(&goes, &key(1), b"").err(),
        one.scan::<&[u8]>(&goes, .., Direction::Up).next().and_then(|found| found.err()),
    ] {
        assert!(matches!(refused, Some(TransactionError::DroppedTree)), "{refused:?}");
    }
    drop(one);
    let left = pages(&store);
    assert!(left * 2 < full, "{full} pages became {left}");
    let again = store.tree("goes").expect("a tree");
    assert_ne!(again, goes);
    put_all(&store, &again, 0..50);
    assert_eq!(store.begin().get(&stays, &key(1)).expect("pages").as_deref(), Some(&VALUE[..]));
    assert_eq!(settled(store).1, 400 + 50 + 2);
}

#[test]
fn a_tree_that_is_truncated_has_nothing_and_goes_on() {
    let (mut store, _) = with_two_trees(&machine(7));
    let tree = store.truncate_tree("goes").expect("room").expect("it is there");
    assert_eq!(store.truncate_tree("none").expect("room"), None);
    assert_eq!(store.tree("goes").expect("a tree"), tree);
    assert!(store.begin().scan::<&[u8]>(&tree, .., Direction::Up).next().is_none());
    put_all(&store, &tree, 0..10);
    assert_eq!(settled(store).1, 400 + 10 + 2);
}

/// Drops a tree, and cuts the power so many I/Os later. Returns whether the power was cut.
fn dropped_and_cut(at: u64) -> bool {
    let files = machine(8);
    let (mut store, _) = with_two_trees(&files);
    files.cut_power_at(files.operations() + at);
    let dropped = store.drop_tree("goes").is_ok() && store.sync().is_ok();
    let step = |service: &Service| store.step(*service).unwrap_or(false);
    while Service::ALL.iter().filter(|service| step(service)).count() > 0 {}
    let is_cut = store.sync().is_err();
    drop(store);
    let (store, _) = open(&cut(&files));
    let names = store.tree_names().expect("pages");
    assert!(names.contains(&"stays".to_owned()));
    let is_there = names.contains(&"goes".to_owned());
    assert!(!is_there || !dropped, "cut {at}");
    let (store, keys, _) = settled(store);
    assert_eq!(keys, if is_there { 2 * 400 + 8 + 2 } else { 400 + 1 }, "cut {at}");
    drop(store);
    is_cut
}

#[test]
fn a_power_cut_while_a_tree_goes_leaves_it_whole_or_gone() {
    let cuts = (1..).step_by(3).take_while(|at| dropped_and_cut(*at)).count();
    assert!(cuts > 5, "{cuts} cuts");
}

/// A store that keeps so much, and what its archive has after so many commits on two keys, trimmed.
fn trimmed_after(keep: Keep, commits: u64) -> (Store, u64) {
    let config = Config { keep, clean_every_bytes: 1, ..config() };
    let (store, _) = Store::open_at(place(&machine(9)), &config).expect("the store opens");
    let tree = store.tree("counters").expect("a tree");
    for at in 0..commits {
        let mut one = store.begin();
        one.put(&tree, &key(at % 2), &at.to_be_bytes()).expect("room");
        one.commit(Memory).expect("a log");
        if at % 500 == 0 {
            settle(&store);
        }
    }
    settle(&store);
    store.trim().expect("the machine is well");
    let bytes = store.stat().archive_bytes;
    (store, bytes)
}

#[test]
fn what_repair_needs_does_not_grow_with_the_number_of_commits() {
    let (few, many) = (trimmed_after(Keep::Repair, 2_000), trimmed_after(Keep::Repair, 20_000));
    assert!(many.1 < few.1 + (32 << 10), "{} bytes became {}", few.1, many.1);
    let all = trimmed_after(Keep::All, 20_000);
    assert!(all.1 > 10 * many.1, "{} bytes of {}", many.1, all.1);
    assert!(many.0.stat().kept_from > all.0.stat().kept_from);
    for (store, _) in [few, many, all] {
        store.replace_pages().expect("the machine is well");
        assert_eq!(settled(store).1, 3);
    }
}

#[test]
fn what_is_kept_by_bytes_is_about_that() {
    let (store, bytes) = trimmed_after(Keep::Bytes(100 << 10), 20_000);
    assert!((100 << 10..300 << 10).contains(&bytes), "{bytes} bytes");
    let (none, left) = trimmed_after(Keep::Bytes(0), 20_000);
    assert!(left < bytes && none.stat().kept_from > store.stat().kept_from);
}

/// Overwrites 50 values of 64 KiB so often, with a store that keeps so much. Returns what its
/// archive and its live pages have, at the most that was seen after any round.
fn overwritten(keep: Keep, rounds: u8) -> (u64, u64) {
    let config = Config { keep, ..config() };
    let (store, _) = Store::open_at(place(&machine(10)), &config).expect("the store opens");
    let tree = store.tree("large").expect("a tree");
    let (mut archive, mut live) = (0, 0);
    for round in 0..rounds {
        for at in 0..50 {
            let mut one = store.begin();
            one.put(&tree, &key(at), &vec![round; 64 << 10]).expect("room");
            one.commit(Memory).expect("a log");
            if at % 10 == 0 {
                settle(&store);
            }
        }
        settle(&store);
        let stat = store.stat();
        archive = archive.max(stat.archive_bytes);
        live = live.max((stat.pages - stat.free_pages) * 8192);
    }
    (archive, live)
}

#[test]
fn large_values_that_are_overwritten_again_and_again_leave_what_was_asked_to_be_kept() {
    let (archive, live) = overwritten(Keep::Repair, 20);
    assert!(archive < 4 * live, "{archive} bytes are archived for {live} that live");
    let kept = 8 << 20;
    let (archive, live) = overwritten(Keep::Bytes(kept), 20);
    assert!((kept..kept + 4 * live).contains(&archive), "{archive} for {kept} and {live}");
}

#[test]
fn a_deleted_key_that_was_to_come_back_and_did_not_goes_all_the_same() {
    let (store, _) = open(&machine(9));
    let tree = store.tree("keys").expect("a tree");
    put_all(&store, &tree, 0..3);
    // Its entry stays, as somebody has read that nothing is behind it.
    let mut reading = store.begin();
    let behind = (Bound::Excluded(key(1)), Bound::Excluded(key(2)));
    assert!(reading.scan(&tree, behind, Direction::Up).next().is_none());
    delete_all(&store, &tree, 1..2);
    let mut reviving = store.begin();
    assert!(reviving.insert(&tree, &key(1), b"again").expect("room"));
    settle(&store);
    reviving.abort().expect("room");
    assert_eq!(sound(&store).ghosts, 1);
    drop(reading);
    settle(&store);
    assert_eq!(sound(&store).ghosts, 0);
}
