//! The archive is enough, whatever form it has.

use std::path::Path;

use holdfast_io::Files;
use holdfast_io::fake::FakeFiles;
use holdfast_store::Durability::Disk;
use holdfast_store::{Compression, Config, Service, Store, Tree};

use crate::support::{config, machine, place, settle, sound};

const KEYS: u16 = 500;

fn open(files: &FakeFiles, compression: Compression) -> (Store, Tree) {
    let config = Config { compression, ..config() };
    let (store, _) = Store::open_at(place(files), &config).expect("the store opens");
    let tree = store.tree("keys").expect("a tree");
    (store, tree)
}

fn value(key: u16, round: u16) -> Vec<u8> {
    format!("{round} is what {key} has got to, and {round} it stays. ").repeat(6).into_bytes()
}

fn fill(store: &Store, tree: &Tree, round: u16) {
    for keys in (0..KEYS).collect::<Vec<_>>().chunks(50) {
        let mut one = store.begin();
        for key in keys {
            one.put(tree, &key.to_be_bytes(), &value(*key, round)).expect("there is room");
        }
        one.commit(Disk).expect("there is room");
    }
}

fn check(store: &Store, tree: &Tree, round: u16) {
    let mut reading = store.begin();
    for key in 0..KEYS {
        let found = reading.get(tree, &key.to_be_bytes()).expect("pages");
        assert_eq!(found, Some(value(key, round)), "key {key}");
    }
}

#[test]
fn an_archive_is_read_whatever_was_compressed_of_it_and_is_smaller() {
    let bytes = [Compression::None, Compression::Lz4].map(|how| {
        let files = machine(1);
        // As chance has it: what one has written in its form the next reads and merges in its own.
        for (round, form) in
            [Compression::None, how, Compression::None, how, how].iter().enumerate()
        {
            let (store, tree) = open(&files, *form);
            fill(&store, &tree, round as u16);
            settle(&store);
            check(&store, &tree, round as u16);
            store.close().expect("the machine is well");
        }
        let (store, tree) = open(&files, how);
        store.replace_pages().expect("the machine is well");
        check(&store, &tree, 4);
        settle(&store);
        assert!(sound(&store).unreached.is_empty());
        store.statistics().archive_bytes
    });
    assert!(bytes[1] * 10 < bytes[0] * 9, "{bytes:?}");
}

#[test]
fn a_store_without_its_page_file_serves_at_once_and_need_not_have_one() {
    let files = machine(1);
    let (store, tree) = open(&files, Compression::Lz4);
    fill(&store, &tree, 0);
    settle(&store);
    store.close().expect("the machine is well");
    for name in ["pages", "versions"] {
        files.remove_file(Path::new(name)).expect("it is there");
    }
    let (store, tree) = open(&files, Compression::Lz4);
    check(&store, &tree, 0);
    // Nobody has brought a page back, and nobody does as long as nobody cleans.
    for round in 1..4 {
        fill(&store, &tree, round);
        check(&store, &tree, round);
        for service in Service::ALL.into_iter().filter(|it| *it != Service::Clean) {
            while store.step(service).expect("the machine is well") {}
        }
    }
    assert!(store.stat().is_restoring && store.statistics().written_pages == 0);
    assert!(store.statistics().pool.misses > 0 && store.stat().faults.iter().all(|it| it.1 == 0));
    drop(store);
    let (store, tree) = open(&files, Compression::None);
    assert!(store.stat().is_restoring);
    check(&store, &tree, 3);
    settle(&store);
    assert!(!store.stat().is_restoring);
    assert!(sound(&store).unreached.is_empty());
}
