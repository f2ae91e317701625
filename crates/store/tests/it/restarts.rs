//! What is there when a store is opened again.

use holdfast_io::fake::FakeFiles;
use holdfast_store::Durability::{Disk, Memory};
use holdfast_store::{OpenError, Store, TransactionError, Tree};

use crate::support::{cut, machine, open, overwrite, settle, sound};

fn put(store: &Store, tree: &Tree, key: &[u8], value: &[u8]) {
    let mut one = store.begin();
    one.put(tree, key, value).expect("room");
    one.commit(Disk).expect("a device");
}

fn get(store: &Store, tree: &Tree, key: &[u8]) -> Option<Vec<u8>> {
    store.begin_impatient().get(tree, key).expect("nobody is at it")
}

/// A store with two keys, and a transaction that has changed both and added a third when the power
/// is cut.
fn after_cut() -> FakeFiles {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("accounts").expect("a tree");
    put(&store, &tree, b"a", b"1");
    put(&store, &tree, b"b", b"1");
    let mut loser = store.begin();
    loser.put(&tree, b"a", b"2").expect("room");
    assert!(loser.delete(&tree, b"b").expect("room"));
    loser.put(&tree, b"c", b"2").expect("room");
    store.sync().expect("a device");
    cut(&files)
}

#[test]
fn what_was_committed_is_there_and_losers_are_undone_when_somebody_meets_them() {
    let (store, recovery) = open(&after_cut());
    assert_eq!((recovery.is_new, recovery.losers), (false, 1));
    let tree = store.tree("accounts").expect("a tree");
    assert_eq!(get(&store, &tree, b"b"), Some(b"1".to_vec()));
    assert_eq!(get(&store, &tree, b"a"), Some(b"1".to_vec()));
    assert_eq!(get(&store, &tree, b"c"), None);
}

#[test]
fn losers_are_undone_when_there_is_time() {
    let files = after_cut();
    let (store, _) = open(&files);
    settle(&store);
    store.sync().expect("a device");
    let (_, recovery) = open(&cut(&files));
    assert_eq!(recovery.losers, 0);
}

#[test]
fn restarts_that_are_cut_short_change_nothing() {
    let mut files = after_cut();
    for _ in 0..4 {
        let (store, recovery) = open(&files);
        assert_eq!(recovery.losers, 1);
        drop(store);
        files = cut(&files);
    }
    let (store, _) = open(&files);
    let tree = store.tree("accounts").expect("a tree");
    assert_eq!(get(&store, &tree, b"a"), Some(b"1".to_vec()));
    store.sync().expect("a device");
    let (_, recovery) = open(&cut(&files));
    assert_eq!(recovery.losers, 0);
}

#[test]
fn a_store_that_was_closed_opens_with_little_to_do() {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("accounts").expect("a tree");
    for key in 0..100_u8 {
        put(&store, &tree, &[key], &[key; 100]);
    }
    store.close().expect("a device");
    let (store, recovery) = open(&cut(&files));
    assert_eq!((recovery.losers, recovery.records_folded, recovery.base), (0, 0, recovery.end));
    let tree = store.tree("accounts").expect("a tree");
    assert!((0..100).all(|key| get(&store, &tree, &[key]) == Some(vec![key; 100])));
}

#[test]
fn a_commit_of_class_memory_is_durable_when_one_behind_it_is() {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("accounts").expect("a tree");
    let mut one = store.begin();
    one.put(&tree, b"a", b"1").expect("room");
    one.commit(Memory).expect("a log");
    let mut reading = store.begin();
    assert_eq!(reading.get(&tree, b"a").expect("a page"), Some(b"1".to_vec()));
    reading.commit(Disk).expect("a device");
    let (store, _) = open(&cut(&files));
    let tree = store.tree("accounts").expect("a tree");
    assert_eq!(get(&store, &tree, b"a"), Some(b"1".to_vec()));
}

#[test]
fn a_store_grows_through_many_windows_and_restarts() {
    let mut files = machine(1);
    for life in 0..4_u32 {
        let (store, _) = open(&files);
        let tree = store.tree("accounts").expect("a tree");
        for key in 0..150_u32 {
            put(&store, &tree, &key.to_be_bytes(), &[life as u8; 700]);
            if key % 10 == 0 {
                settle(&store);
            }
        }
        let mut loser = store.begin();
        for key in 0..150_u32 {
            loser.put(&tree, &key.to_be_bytes(), b"lost").expect("room");
        }
        store.sync().expect("a device");
        std::mem::forget(loser);
        files = cut(&files);
        let (store, recovery) = open(&files);
        assert_eq!(recovery.losers, 1);
        let tree = store.tree("accounts").expect("a tree");
        let sound =
            |key: u32| get(&store, &tree, &key.to_be_bytes()) == Some(vec![life as u8; 700]);
        assert!((0..150).all(sound));
        store.sync().expect("a device");
    }
}

#[test]
fn what_is_no_store_is_told() {
    let files = machine(1);
    drop(open(&files));
    ["store", "store.copy"].iter().for_each(|name| overwrite(&files, name, b"x"));
    let opened = Store::open_at(crate::support::place(&files), &crate::support::config());
    assert!(matches!(opened, Err(OpenError::Header)), "{opened:?}");
}

#[test]
fn a_directory_of_this_machine_has_one_store_open_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("store");
    let config = holdfast_store::Config::default();
    let (store, recovery) = Store::open(&directory, &config).expect("a directory");
    assert!(recovery.is_new);
    let tree = store.tree("accounts").expect("a tree");
    put(&store, &tree, b"a", b"1");
    let again = Store::open(&directory, &config);
    assert!(matches!(again, Err(OpenError::InUse)), "{again:?}");
    drop(store);
    let (store, recovery) = Store::open(&directory, &config).expect("nobody has it");
    assert!(!recovery.is_new);
    let tree = store.tree("accounts").expect("a tree");
    assert_eq!(get(&store, &tree, b"a"), Some(b"1".to_vec()));
    let busy = store.begin_impatient().get(&tree, b"z");
    assert!(!matches!(busy, Err(TransactionError::Busy(_))));
    store.close().expect("a device");
}

#[test]
fn after_a_crash_trees_are_sound_and_only_what_was_not_told_yet_is_nobodys() {
    let (store, _) = open(&after_cut());
    let found = sound(&store);
    assert_eq!((found.trees, found.unreached.len()), (2, 0), "{found:?}");
    settle(&store);
    assert_eq!(sound(&store).keys, 3);
}
