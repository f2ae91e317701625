//! What a store tells of itself before it is used.

use holdfast_store::{Config, OpenError, Store};

use crate::support::{machine, open};

#[test]
fn a_tree_is_found_only_if_it_was_made() {
    let (store, _) = open(&machine(4));
    let (one, many) = (store.tree("one").expect("a tree"), store.tree("many").expect("a tree"));
    assert_eq!(store.tree_names().expect("names"), ["many", "one"]);
    assert_eq!(store.find_tree("many").expect("names"), Some(many));
    assert_eq!(store.find_tree("one").expect("names"), Some(one));
    assert_eq!(store.find_tree("none").expect("names"), None);
    assert_eq!(store.tree_names().expect("names"), ["many", "one"]);
}

/// Whoever is told that there is no store makes one.
#[test]
fn a_store_that_lacks_one_of_the_two_files_that_say_so_is_one() {
    for name in ["store", "store.copy"] {
        let directory = tempfile::tempdir().expect("a directory");
        let is_one = || Store::is_at(directory.path()).expect("a directory");
        let (store, _) = Store::open(directory.path(), &Config::default()).expect("a store");
        store.close().expect("the machine is well");
        std::fs::remove_file(directory.path().join(name)).expect("it is there");
        assert!(is_one(), "without {name}");
        let (store, recovery) = Store::open(directory.path(), &Config::default()).expect("a store");
        assert!(!recovery.is_new, "without {name}");
        store.close().expect("the machine is well");
        assert!(is_one(), "without {name}");
    }
}

#[test]
fn a_directory_with_something_else_in_it_is_left_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    assert!(!Store::is_at(directory.path()).expect("a directory"));
    std::fs::write(directory.path().join("letter"), "dear").expect("room");
    let refused = Store::open(directory.path(), &Config::default());
    assert!(matches!(refused, Err(OpenError::NotAStore)));
    assert_eq!(std::fs::read_dir(directory.path()).expect("names").count(), 1);
    std::fs::remove_file(directory.path().join("letter")).expect("it is there");
    let (store, recovery) = Store::open(directory.path(), &Config::default()).expect("a store");
    assert!(recovery.is_new && Store::is_at(directory.path()).expect("a directory"));
    store.close().expect("the machine is well");
}
