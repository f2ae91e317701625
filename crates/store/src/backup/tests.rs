//! A store that was made from a backup alone repairs each of its pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use holdfast_pages::{FaultKind, PAGE_BYTES, Page, PageNumber};

use super::*;
use crate::{Durability, LogPlace, Medium, Service, Services};

fn config() -> Config {
    let (memory, ring_bytes, segment_bytes) = (Medium::Private, 1 << 20, 256 << 10);
    Config {
        pool_bytes: 1 << 20,
        log: LogPlace::Embedded { memory, ring_bytes, segment_bytes },
        clean_every_bytes: 1,
        services: Services::Stepped,
        ..Config::default()
    }
}

fn open(directory: &Path) -> Store {
    Store::open(directory, &config()).expect("the store opens").0
}

fn settle(store: &Store) {
    let step = |service: &Service| store.step(*service).expect("the machine is well");
    while Service::ALL.iter().filter(|service| step(service)).count() > 0 {}
}

/// Puts keys from 0 to `keys`, some with values that have pages of their own, and deletes others.
fn change(store: &Store, keys: u32, value: u8) {
    let tree = store.tree("keys").expect("a tree");
    for key in 0..keys {
        let bytes = if key % 40 == 7 { 20_000 } else { 300 };
        let mut one = store.begin();
        one.put(&tree, &key.to_be_bytes(), &vec![value; bytes]).expect("there is room");
        if key % 5 == 3 {
            one.delete(&tree, &key.to_be_bytes()).expect("there is room");
        }
        one.commit(Durability::Memory).expect("there is room");
    }
    store.work.engine.pages.archive_all().expect("the machine is well");
    settle(store);
}

/// A store made from a backup that was brought forward and is gone, as its original is. Most of its
/// pages have had no record since the backup; its page file is back.
fn made(below: &Path) -> Store {
    let [original, backup, made] = ["original", "backup", "made"].map(|name| below.join(name));
    let store = open(&original);
    change(&store, 400, 1);
    change(&store, 300, 2);
    store.back_up(&backup, &mut |_| ()).expect("there is room");
    change(&store, 60, 3);
    store.forward(&backup, &mut |_| {}).expect("there is room");
    drop(store);
    fs::remove_dir_all(original).expect("it is there");
    restore(&backup, At::End, &made, &config(), &mut |_| ()).expect("there is room");
    fs::remove_dir_all(backup).expect("it is there");
    let store = open(&made);
    settle(&store);
    assert!(!store.stat().is_restoring);
    store
}

/// What a device may make of a page: what is read then, and what that is called.
fn damages(sound: &[u8], neighbour: &[u8], old: &[u8]) -> Vec<(Vec<u8>, FaultKind)> {
    let torn = [&sound[..512], &[0xAA; 512], &sound[1024..]].concat();
    let mut damages = vec![
        (vec![0; PAGE_BYTES], FaultKind::Zeroed),
        (neighbour.to_vec(), FaultKind::Misplaced),
        (torn, FaultKind::Damaged),
    ];
    damages.extend((old != sound).then(|| (old.to_vec(), FaultKind::LostWrite)));
    for bit in [3, 8 * 17, 8 * 2000, 8 * PAGE_BYTES - 1] {
        let mut flipped = sound.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        damages.push((flipped, FaultKind::Damaged));
    }
    damages
}

/// The page as it is loaded, and what was wrong with it on its device.
fn load(store: &Store, number: u64) -> (Page, Option<FaultKind>) {
    let mut page = Page::zeroed();
    let loaded = store.work.engine.pages.load(PageNumber(number), &mut page);
    let loaded = loaded.unwrap_or_else(|error| panic!("page {number}: {error}"));
    (page, loaded.repaired)
}

fn pages_in(path: &Path) -> Vec<Vec<u8>> {
    fs::read(path).expect("it is there").chunks(PAGE_BYTES).map(<[u8]>::to_vec).collect()
}

#[test]
fn each_page_of_a_store_that_was_made_from_a_backup_is_repaired_when_the_backup_is_gone() {
    let below = tempfile::tempdir().expect("a directory");
    let store = made(below.path());
    let path = below.path().join("made").join("pages");
    let old = pages_in(&path);
    change(&store, 70, 4);
    let sound = pages_in(&path);
    let file = fs::File::options().write(true).open(&path).expect("it is there");
    let (mut kinds, mut faults) = (BTreeMap::new(), BTreeSet::new());
    for number in 1..old.len() {
        let (wanted, repaired) = load(&store, number as u64);
        assert_eq!(repaired, None, "page {number} was sound");
        *kinds.entry(wanted.kind().expect("it is a page") as u16).or_insert(0) += 1;
        let neighbour = &sound[if number == 1 { 2 } else { number - 1 }];
        for (bytes, kind) in damages(&sound[number], neighbour, &old[number]) {
            file.write_all_at(&bytes, (number * PAGE_BYTES) as u64).expect("there is room");
            let (page, repaired) = load(&store, number as u64);
            assert_eq!(repaired, Some(kind), "page {number}");
            assert!(page.same_bytes(&wanted), "page {number}, {kind:?}");
            faults.insert(kind);
        }
        file.write_all_at(&sound[number], (number * PAGE_BYTES) as u64).expect("there is room");
    }
    assert_eq!((kinds.len(), faults.len()), (4, 4), "{kinds:?} {faults:?}");
}

#[test]
fn a_store_that_was_made_from_a_backup_loses_its_page_file_and_has_the_same_again() {
    let below = tempfile::tempdir().expect("a directory");
    let store = made(below.path());
    let path = below.path().join("made").join("pages");
    let sound = pages_in(&path);
    store.close().expect("the machine is well");
    fs::remove_file(&path).expect("it is there");
    let store = open(&below.path().join("made"));
    settle(&store);
    assert!(pages_in(&path) == sound, "the archive has every page");
    let verified = store.verify(&mut |_| ()).expect("the machine is well");
    assert!(verified.faults.is_empty(), "{verified:?}");
}
