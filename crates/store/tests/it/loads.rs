//! Trees that are made of keys in order: whole, or not there.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast_io::Files;
use holdfast_io::fake::{FakeFiles, Mood, Random};
use holdfast_store::Durability::{Disk, Memory};
use holdfast_store::{Direction, LoadTreeError, Service, Store, TransactionError};

use crate::power::with_seeds;
use crate::support::{cut, machine, open, place, settle, sound};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys that have much or little in common with their neighbours, and values of all sizes.
fn any(random: &mut Random, count: std::ops::Range<u64>) -> Model {
    let mut model = Model::new();
    for _ in 0..count.start + random.below(count.end - count.start) {
        let shared = vec![b'a' + random.below(3) as u8; random.below(300).pow(2) as usize / 200];
        let key = [shared, random.below(1 << 20).to_string().into_bytes()].concat();
        let most = if random.below(100) == 0 { 20_000 } else { 400 };
        model.insert(key, vec![random.any() as u8; random.below(most) as usize]);
    }
    model
}

fn contents(store: &Store, name: &str) -> Option<Model> {
    let tree = store.find_tree(name).expect("names")?;
    let mut reading = store.begin();
    let found = reading.scan::<&[u8]>(&tree, .., Direction::Up);
    Some(found.map(|found| found.expect("pages")).collect())
}

/// Loads a tree, looks at it, changes it as any other, and looks again after a power cut.
fn load(seed: u64) -> u64 {
    let (mut random, files) = (Random::new(seed), machine(seed));
    let (store, _) = open(&files);
    let mut model = any(&mut random, 0..600);
    let fill = 1 + random.below(100) as u8;
    let tree = store.load_tree("loaded", fill, &model, Disk).expect("there is room");
    assert_eq!(contents(&store, "loaded"), Some(model.clone()));
    assert!(sound(&store).unreached.is_empty());
    let mut one = store.begin();
    for (key, value) in any(&mut random, 0..60) {
        one.put(&tree, &key, &value).expect("there is room");
        model.insert(key, value);
    }
    one.commit(Disk).expect("there is room");
    drop(store);
    let (store, _) = open(&cut(&files));
    assert_eq!(contents(&store, "loaded"), Some(model.clone()));
    assert!(sound(&store).unreached.is_empty());
    model.len() as u64
}

#[test]
fn a_loaded_tree_has_what_it_was_given_and_is_as_any_other() {
    with_seeds(1..21, "loads::a_loaded_tree", load);
}

/// Loads a tree while the power goes. Whether it is there afterwards; none if the power stayed.
fn cut_at(operation: u64, seed: u64) -> Option<bool> {
    let files = machine(seed);
    let (store, _) = open(&files);
    let other = store.tree("other").expect("a tree");
    let mut one = store.begin();
    one.put(&other, b"key", b"value").expect("there is room");
    one.commit(Disk).expect("a log");
    let model = any(&mut Random::new(seed), 1000..1500);
    files.cut_power_at(files.operations() + operation);
    let loaded = store.load_tree("loaded", 90, &model, Disk);
    drop(store);
    if loaded.is_ok() {
        return None;
    }
    let moods = [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter];
    let files = files.after_power_cut_in(moods[operation as usize % moods.len()], operation);
    let (mut store, _) = open(&files);
    let found = contents(&store, "loaded");
    assert!(found.as_ref().is_none_or(|found| *found == model), "a part of it is there");
    settle(&store);
    store.reclaim().expect("the trees are sound");
    assert!(sound(&store).unreached.is_empty());
    assert_eq!(contents(&store, "other").expect("it was there").len(), 1);
    let stat = store.stat();
    let used = stat.pages - stat.free_pages;
    assert!(found.is_some() || used == 2, "{used} pages are used");
    Some(found.is_some())
}

fn cut_everywhere(seed: u64) -> u64 {
    let there = (1..).map_while(|operation| cut_at(operation, seed));
    let (whole, none): (Vec<bool>, Vec<bool>) = there.partition(|is_there| *is_there);
    assert!(none.len() > 5, "{} times there, {} times not", whole.len(), none.len());
    (whole.len() + none.len()) as u64
}

#[test]
fn a_power_cut_at_any_operation_leaves_all_of_a_loaded_tree_or_nothing() {
    with_seeds(1..3, "loads::a_power_cut", cut_everywhere);
}

/// 3,000 keys in order, of which one is a number of 20 digits.
fn numbered() -> impl Iterator<Item = (Vec<u8>, [u8; 40])> {
    (0..3000_u32).map(|number| (format!("key {number:020}").into_bytes(), [7; 40]))
}

/// A store without its own trees, and how many pages that has.
fn empty() -> (FakeFiles, Store) {
    let files = machine(1);
    let (store, _) = open(&files);
    (files, store)
}

#[test]
fn leaves_are_filled_as_much_as_was_asked_for_and_the_log_gets_little_more() {
    let bytes: u64 = numbered().map(|(key, value)| (key.len() + value.len()) as u64).sum();
    let pages = [100, 50].map(|fill| {
        let (_, store) = empty();
        let before = store.stat();
        store.load_tree("loaded", fill, numbered(), Memory).expect("there is room");
        let logged = store.stat().next.since(before.next);
        assert!(logged < bytes * 11 / 10, "{logged} bytes of records for {bytes}");
        store.stat().pages - before.pages
    });
    // An entry takes ten bytes more, and what all keys of a leaf begin with is there once.
    assert!(pages[0] < bytes / 8192 + 3, "{pages:?} pages for {bytes} bytes");
    assert!((2 * pages[0] - 4..2 * pages[0] + 4).contains(&pages[1]), "{pages:?}");
}

#[test]
fn what_is_not_in_order_or_has_no_end_leaves_no_tree_and_its_pages_become_free() {
    let (_, store) = empty();
    let before = store.stat().pages - store.stat().free_pages;
    let twice = numbered().chain(numbered());
    let refused = store.load_tree("loaded", 100, twice, Memory);
    assert!(matches!(refused, Err(LoadTreeError::NotSorted { .. })), "{refused:?}");
    let long = numbered().chain([(vec![b'z'; 1000], [7; 40])]);
    let refused = store.load_tree("loaded", 100, long, Memory);
    let is_told = matches!(refused, Err(LoadTreeError::Transaction(TransactionError::KeyTooLarge)));
    assert!(is_told, "{refused:?}");
    let ends = numbered().inspect(|(key, _)| assert!(!key.ends_with(b"2500"), "no more"));
    let load = || store.load_tree("loaded", 100, ends, Memory);
    assert!(catch_unwind(AssertUnwindSafe(load)).is_err());
    assert_eq!(store.find_tree("loaded").expect("names"), None);
    settle(&store);
    assert_eq!(store.stat().pages - store.stat().free_pages, before);
    assert!(sound(&store).unreached.is_empty());
    store.load_tree("loaded", 100, numbered(), Memory).expect("there is room");
    let refused = store.load_tree("loaded", 100, numbered(), Memory);
    assert!(matches!(refused, Err(LoadTreeError::Exists)), "{refused:?}");
    assert_eq!(contents(&store, "loaded").expect("it is there").len(), 3000);
}

#[test]
fn large_values_of_a_load_that_is_refused_or_panics_become_free_too() {
    let (_, store) = empty();
    let before = store.stat().pages - store.stat().free_pages;
    for last in (1..200_u32).step_by(13) {
        let bytes =
            |at: u32| if at.is_multiple_of(3) { 40 } else { 2000 + 3000 * (at as usize % 4) };
        let items = (0_u32..last).map(|at| (at.to_be_bytes().to_vec(), vec![7; bytes(at)]));
        let (wrong, long) = (vec![0], vec![255; 1000]);
        let refused = match last % 3 {
            0 => store.load_tree("loaded", 90, items.chain([(wrong, vec![7; 5000])]), Memory),
            1 => store.load_tree("loaded", 90, items.chain([(long, vec![7; 5000])]), Memory),
            _ => {
                let ends = items.inspect(|(key, _)| assert!(key[..] != (last - 1).to_be_bytes()));
                let load = || store.load_tree("loaded", 90, ends, Memory);
                assert!(catch_unwind(AssertUnwindSafe(load)).is_err());
                continue;
            }
        };
        assert!(refused.is_err(), "{last} keys");
    }
    settle(&store);
    assert_eq!(sound(&store).unreached, vec![]);
    assert_eq!(store.stat().pages - store.stat().free_pages, before);
}

#[test]
fn large_values_of_a_load_that_the_disk_has_no_room_for_become_free_when_there_is_some() {
    let refused = (0..12).filter(|more| {
        let (files, store) = empty();
        settle(&store);
        let (before, limit) = (store.stat().pages - store.stat().free_pages, 1 << 40);
        files.set_capacity_bytes(Some(limit));
        let available = files.space().expect("a disk").available_bytes;
        files.set_capacity_bytes(Some(limit - available + more * 100_000));
        let items = (0..150_u32).map(|at| (at.to_be_bytes(), vec![7; 9000]));
        let loaded = store.load_tree("loaded", 90, items, Memory);
        files.set_capacity_bytes(None);
        settle(&store);
        assert_eq!(sound(&store).unreached, vec![], "{more}");
        let used = store.stat().pages - store.stat().free_pages;
        assert!(loaded.is_ok() || used == before, "{used} pages are used");
        loaded.is_err()
    });
    assert!(refused.count() > 3);
}

#[test]
fn nobody_frees_what_is_being_loaded() {
    let (_, store) = empty();
    let steps = numbered().inspect(|_| {
        store.step(Service::Undo).expect("the machine is well");
    });
    store.load_tree("loaded", 80, steps, Memory).expect("there is room");
    settle(&store);
    assert_eq!(contents(&store, "loaded").expect("it is there").len(), 3000);
    assert!(sound(&store).unreached.is_empty());
}

#[test]
fn a_tree_of_nothing_is_loaded_too() {
    let (files, store) = empty();
    store.load_tree("loaded", 0, Model::new(), Disk).expect("there is room");
    drop(store);
    let (store, _) = Store::open_at(place(&cut(&files)), &crate::support::config()).expect("opens");
    assert_eq!(contents(&store, "loaded"), Some(Model::new()));
}
