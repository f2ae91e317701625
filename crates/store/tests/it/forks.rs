//! A process that has a store open forks, and the child goes on with what it was given.
//!
//! The process that forks is this test's program, started again for one test alone, so that no
//! thread of another test has a lock that the child would wait for.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use holdfast_io::fake::Forked;
use holdfast_store::{Config, Durability, OpenError, Services, Store, Tree};

use crate::support;

/// The directory that a process is told to keep a store in, and to fork.
const DIRECTORY: &str = "HOLDFAST_STORE_FORKED_IN";

fn opened(directory: &Path) -> Result<Store, OpenError> {
    let config = Config { services: Services::Threads, ..support::config() };
    Store::open(&directory.join("store"), &config).map(|(store, _)| store)
}

/// Calls `scene` in a process that runs this test alone.
fn alone(test: &str, scene: impl FnOnce(&Path)) {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return scene(directory.as_ref());
    }
    let directory = tempfile::tempdir().unwrap();
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("forks::{test}"), "--nocapture"])
        .env(DIRECTORY, directory.path())
        .status();
    assert!(ran.unwrap().success());
}

/// Puts this key, and says what came of it.
fn put(store: &Store, tree: &Tree, key: u32) -> Result<(), String> {
    let mut transaction = store.begin();
    transaction.put(tree, &key.to_be_bytes(), b"parent's").map_err(|error| error.to_string())?;
    transaction.commit(Durability::Disk).map(drop).map_err(|error| error.to_string())
}

/// Whether these keys, and no others, are there.
fn has_exactly(directory: &Path, keys: std::ops::Range<u32>) -> bool {
    let store = opened(directory).unwrap();
    let tree = store.tree("tree").unwrap();
    let mut reading = store.begin();
    let found = reading.scan_prefix(&tree, b"", holdfast_store::Direction::Up);
    found.map(|found| found.unwrap().0).eq(keys.map(|key| key.to_be_bytes().to_vec()))
}

fn is_told<T, E: std::fmt::Display>(done: Result<T, E>) -> bool {
    done.is_err_and(|error| error.to_string().contains("forked"))
}

#[test]
fn a_child_changes_nothing_of_a_store_and_drops_it_without_waiting() {
    alone("a_child_changes_nothing_of_a_store_and_drops_it_without_waiting", |directory| {
        let store = opened(directory).unwrap();
        let tree = store.tree("tree").unwrap();
        (0..100).for_each(|key| put(&store, &tree, key).unwrap());
        let store = RefCell::new(Some(store));
        let child = Forked::begin(|| {
            thread::sleep(Duration::from_millis(50));
            let store = store.take().unwrap();
            assert!(is_told(put(&store, &tree, 500)));
            assert!(is_told(store.sync()));
            drop(store);
        });
        let store = store.into_inner().unwrap();
        (100..200).for_each(|key| put(&store, &tree, key).unwrap());
        child.wait();
        (200..300).for_each(|key| put(&store, &tree, key).unwrap());
        store.close().unwrap();
        assert!(has_exactly(directory, 0..300));
    });
}

#[test]
fn a_child_that_closes_a_store_is_refused_and_leaves_it_to_its_parent() {
    alone("a_child_that_closes_a_store_is_refused_and_leaves_it_to_its_parent", |directory| {
        let store = opened(directory).unwrap();
        let tree = store.tree("tree").unwrap();
        (0..100).for_each(|key| put(&store, &tree, key).unwrap());
        let store = RefCell::new(Some(store));
        Forked::does(|| assert!(is_told(store.take().unwrap().close())));
        assert!(matches!(opened(directory), Err(OpenError::InUse)));
        (100..200).for_each(|key| put(store.borrow().as_ref().unwrap(), &tree, key).unwrap());
        // No close: what the child was refused must not be missed by whoever recovers.
        drop(store.into_inner());
        assert!(has_exactly(directory, 0..200));
    });
}
