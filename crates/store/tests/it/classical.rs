//! Checkpoints, cleaning and restarts of the classical kind: what they do beside others, and what
//! they cost.

use holdfast_io::fake::FakeFiles;
use holdfast_store::Durability::{Disk, Memory};
use holdfast_store::{Checkpoints, Cleaner, Config, Restart, Rsn, Service, Store, Tree};

use crate::support::{config, cut, machine, place, settle, sound};

const KEYS: u32 = 300;

fn open(files: &FakeFiles, config: &Config) -> Store {
    Store::open_at(place(files), config).expect("the store opens").0
}

fn put(store: &Store, tree: &Tree, from: u32) {
    for key in (from..KEYS).step_by(3) {
        let mut one = store.begin();
        one.put(tree, &key.to_be_bytes(), &[key as u8; 100]).expect("room");
        one.commit(Memory).expect("a log");
    }
}

/// The machine after a crash, with one loser, and a checkpoint between changes.
fn life(config: &Config) -> (FakeFiles, u64) {
    let files = machine(1);
    let store = open(&files, config);
    let tree = store.tree("keys").expect("a tree");
    put(&store, &tree, 0);
    assert!(store.checkpoint().expect("room"));
    put(&store, &tree, 1);
    let mut loser = store.begin();
    loser.put(&tree, &0_u32.to_be_bytes(), b"never").expect("room");
    assert!(store.step(Service::Checkpoint).expect("room"));
    put(&store, &tree, 2);
    store.sync().expect("a device");
    std::mem::forget(loser);
    (cut(&files), store.checkpoint_latches())
}

fn check(store: &Store) {
    let tree = store.tree("keys").expect("a tree");
    for key in 0..KEYS {
        let value = store.begin().get(&tree, &key.to_be_bytes()).expect("a page");
        assert_eq!(value, Some(vec![key as u8; 100]));
    }
}

#[test]
fn classical_checkpoints_take_latches_and_others_take_none() {
    for checkpoints in [Checkpoints::Decoupled, Checkpoints::Reread, Checkpoints::Classical] {
        let (files, latches) = life(&Config { checkpoints, ..config() });
        assert_eq!(latches > 5, checkpoints == Checkpoints::Classical, "{latches}");
        assert_eq!(latches > 0, checkpoints == Checkpoints::Classical, "{latches}");
        check(&open(&files, &config()));
    }
}

#[test]
fn a_classical_restart_leaves_nothing_to_be_undone() {
    let (files, _) = life(&config());
    let classical = Config { restart: Restart::Classical, ..config() };
    let (store, recovery) = Store::open_at(place(&files), &classical).expect("the store opens");
    assert_eq!(recovery.losers, 1);
    assert!(!store.step(Service::Undo).expect("the machine is well"));
    check(&store);
    let mut more = store.begin();
    let tree = store.tree("keys").expect("a tree");
    more.put(&tree, b"more", b"value").expect("room");
    more.commit(Disk).expect("a device");
    settle(&store);
    store.close().expect("the machine is well");
    check(&open(&files, &config()));
}

/// A machine with a store that one kind of cleaner has kept clean while keys came and changed, and
/// how many latches that took.
fn cleaned(cleaner: Cleaner, pool_bytes: u64) -> (FakeFiles, Config, u64) {
    let config = Config { cleaner, pool_bytes, clean_every_bytes: 1, ..config() };
    let files = machine(1);
    let store = open(&files, &config);
    let tree = store.tree("keys").expect("a tree");
    for round in 0..20_u32 {
        for key in (round % 3..3 * KEYS).step_by(3) {
            let mut one = store.begin();
            one.put(&tree, &key.to_be_bytes(), &[key as u8; 400]).expect("room");
            one.commit(Memory).expect("a log");
            if key % 64 < 3 {
                store.step(Service::Archive).expect("room");
                store.step(Service::Clean).expect("room");
            }
        }
    }
    settle(&store);
    let stat = store.stat();
    assert_eq!((stat.rebuilt_pages, stat.lost_pages), (0, 0));
    assert!(stat.cleaned > Rsn::FIRST && stat.cleaned <= stat.archived, "{stat:?}");
    let latches = store.cleaner_latches();
    store.sync().expect("a device");
    (cut(&files), config, latches)
}

#[test]
fn a_classical_cleaner_takes_latches_and_the_other_takes_none() {
    for pool_bytes in [24 * 8192, 400 * 8192] {
        for cleaner in [Cleaner::Decoupled, Cleaner::Classical] {
            let (files, config, latches) = cleaned(cleaner, pool_bytes);
            assert_eq!(latches > 100, cleaner == Cleaner::Classical, "{latches}");
            assert_eq!(latches > 0, cleaner == Cleaner::Classical, "{latches}");
            // Whoever cleans, either goes on where the other was.
            for after in [Cleaner::Classical, Cleaner::Decoupled] {
                let store = open(&files, &Config { cleaner: after, ..config.clone() });
                verify(&store);
                settle(&store);
                verify(&store);
            }
        }
    }
}

fn verify(store: &Store) {
    let tree = store.tree("keys").expect("a tree");
    for key in 0..3 * KEYS {
        let value = store.begin().get(&tree, &key.to_be_bytes()).expect("a page");
        assert_eq!(value, Some(vec![key as u8; 400]));
    }
    sound(store);
    let faults = store.stat().faults;
    assert!(faults.iter().all(|(_, count)| *count == 0), "{faults:?}");
}

#[test]
fn a_lost_page_file_comes_back_whoever_cleans() {
    let (files, config, _) = cleaned(Cleaner::Classical, 24 * 8192);
    let store = open(&files, &config);
    store.replace_pages().expect("room");
    settle(&store);
    assert!(!store.stat().is_restoring);
    verify(&store);
}
