//! Numbers come back that no page has, and others are waited for.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::node::large::Stored;
use crate::{Config, Durability, LogPlace, Medium, Services, Store};

fn open(directory: &Path) -> Store {
    let (memory, ring_bytes, segment_bytes) = (Medium::Private, 1 << 20, 256 << 10);
    let log = LogPlace::Embedded { memory, ring_bytes, segment_bytes };
    let config = Config { log, services: Services::Stepped, ..Config::default() };
    Store::open(directory, &config).expect("the store opens").0
}

#[test]
fn a_number_that_was_given_and_that_no_page_has_is_given_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = open(directory.path());
    let tree = store.tree("keys").expect("a tree");
    for bytes in [20_000, 20] {
        let mut one = store.begin();
        one.put(&tree, b"key", &vec![7; bytes]).expect("there is room");
        one.commit(Durability::Memory).expect("there is room");
    }
    let numbers = &store.work.engine.numbers;
    let (next, free) = numbers.unused();
    assert!(!free.is_empty());
    // All that are free, and one that no page ever had.
    let given: BTreeSet<_> = (0..=free.len()).map(|_| numbers.take()).collect();
    assert!(given.contains(&next) && numbers.unused().1.is_empty());
    assert_eq!(store.reclaim().expect("the trees are sound"), 0, "there was no page to be freed");
    assert_eq!(BTreeSet::from_iter(store.work.engine.numbers.unused().1), given);
}

#[test]
fn what_a_thread_of_the_store_is_freeing_is_not_freed_twice() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = open(directory.path());
    let root = store.tree("keys").expect("a tree").root;
    let engine = Arc::clone(&store.work.engine);
    let stored = engine.trees().tree(root).store(&[7; 20_000]).expect("there is room");
    let large = Stored::large_of(&stored).expect("it has pages of its own");
    let (begin, begun) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let _alone = engine.freeing.lock().expect("nobody panics");
            begin.send(()).expect("somebody waits");
            thread::sleep(Duration::from_millis(50));
            engine.trees().tree(root).free(large).expect("nobody else has freed them");
        });
        begun.recv().expect("it has begun");
        assert_eq!(store.reclaim().expect("the trees are sound"), 0);
    });
}
