//! What a transaction does, and what others see of it.

use holdfast_store::Durability::{Disk, Memory};
use holdfast_store::{
    CommitError, Direction, LARGE_VALUE_BYTES_MAX, Store, TransactionError, Tree,
};

use crate::support::{machine, open};

fn store() -> (Store, Tree) {
    let (store, recovery) = open(&machine(1));
    assert!(recovery.is_new);
    let tree = store.tree("accounts").expect("a tree");
    (store, tree)
}

fn get(store: &Store, tree: &Tree, key: &[u8]) -> Option<Vec<u8>> {
    store.begin_impatient().get(tree, key).expect("nobody is at it")
}

#[test]
fn what_is_committed_is_seen_and_what_is_aborted_is_not() {
    let (store, tree) = store();
    let mut one = store.begin();
    assert!(one.insert(&tree, b"a", b"1").expect("room"));
    assert!(!one.insert(&tree, b"a", b"2").expect("room"));
    one.put(&tree, b"b", b"2").expect("room");
    one.put(&tree, b"b", b"3").expect("room");
    assert_eq!(one.get(&tree, b"b").expect("a page"), Some(b"3".to_vec()));
    one.commit(Disk).expect("a device");

    let mut two = store.begin();
    assert!(two.delete(&tree, b"a").expect("room"));
    assert!(!two.delete(&tree, b"a").expect("room"));
    assert!(two.insert(&tree, b"a", b"new").expect("room"));
    assert!(two.update(&tree, b"b", |value| value.push(b'!')).expect("room"));
    assert!(!two.update(&tree, b"c", |value| value.push(b'!')).expect("room"));
    assert_eq!(two.get_for_update(&tree, b"b").expect("a page"), Some(b"3!".to_vec()));
    two.abort().expect("undone");

    assert_eq!(get(&store, &tree, b"a"), Some(b"1".to_vec()));
    assert_eq!(get(&store, &tree, b"b"), Some(b"3".to_vec()));
    assert_eq!(get(&store, &tree, b"c"), None);
}

#[test]
fn a_transaction_that_is_dropped_has_never_been() {
    let (store, tree) = store();
    let mut one = store.begin();
    one.put(&tree, b"a", b"1").expect("room");
    drop(one);
    assert_eq!(get(&store, &tree, b"a"), None);
}

#[test]
fn a_transaction_goes_back_to_a_savepoint_and_on_from_there() {
    let (store, tree) = store();
    let mut one = store.begin();
    one.put(&tree, b"a", b"1").expect("room");
    let savepoint = one.savepoint();
    one.put(&tree, b"a", b"2").expect("room");
    one.put(&tree, b"b", b"2").expect("room");
    let later = one.savepoint();
    one.roll_back_to(savepoint).expect("undone");
    assert_eq!(one.get(&tree, b"a").expect("a page"), Some(b"1".to_vec()));
    assert!(matches!(one.roll_back_to(later), Err(TransactionError::SavepointGone)));
    one.put(&tree, b"c", b"3").expect("room");
    one.commit(Memory).expect("a log");
    let found = [b"a", b"b", b"c"].map(|key| get(&store, &tree, key).is_some());
    assert_eq!(found, [true, false, true]);
}

#[test]
fn others_keep_off_what_a_transaction_has_read_or_changed() {
    let (store, tree) = store();
    let (mut one, mut other) = (store.begin(), store.begin_impatient());
    one.put(&tree, b"a", b"1").expect("room");
    assert_eq!(one.get(&tree, b"b").expect("a page"), None);
    assert!(matches!(other.get(&tree, b"a"), Err(TransactionError::Busy(_))));
    assert_eq!(other.get(&tree, b"b").expect("a page"), None);
    assert!(matches!(other.put(&tree, b"b", b"2"), Err(TransactionError::Busy(_))));
    one.commit(Memory).expect("a log");
    assert_eq!(other.get(&tree, b"a").expect("a page"), Some(b"1".to_vec()));
    other.put(&tree, b"b", b"2").expect("room");
}

#[test]
fn one_of_two_that_wait_for_one_another_is_told_and_the_other_goes_on() {
    let (store, tree) = store();
    let mut one = store.begin();
    one.put(&tree, b"a", b"1").expect("room");
    std::thread::scope(|threads| {
        let (ready, has_b) = std::sync::mpsc::channel();
        let (store, tree) = (&store, &tree);
        let other = threads.spawn(move || {
            let mut other = store.begin();
            other.put(tree, b"b", b"2").expect("room");
            ready.send(()).expect("somebody listens");
            other.put(tree, b"a", b"2").map(|()| other.commit(Memory).expect("a log"))
        });
        has_b.recv().expect("he has it");
        let mine = one.put(tree, b"b", b"1");
        let doomed = matches!(mine, Err(TransactionError::Deadlock(_)));
        if doomed {
            assert!(matches!(one.get(tree, b"a"), Err(TransactionError::Doomed)));
            assert!(matches!(one.commit(Memory), Err(CommitError::Doomed)));
        } else {
            mine.expect("the other one was told");
            one.commit(Memory).expect("a log");
        }
        let others = other.join().expect("no panic");
        assert_ne!(doomed, matches!(others, Err(TransactionError::Deadlock(_))));
    });
    let values = [b"a", b"b"].map(|key| get(&store, &tree, key).expect("one committed"));
    assert_eq!(values[0], values[1]);
}

#[test]
fn what_does_not_fit_is_refused_and_the_transaction_goes_on() {
    let (store, tree) = store();
    let mut one = store.begin();
    let long = vec![0; LARGE_VALUE_BYTES_MAX + 1];
    assert!(matches!(one.put(&tree, b"a", &long), Err(TransactionError::ValueTooLarge)));
    assert!(matches!(one.put(&tree, &long, b""), Err(TransactionError::KeyTooLarge)));
    one.put(&tree, b"a", &long[..3 << 20]).expect("room");
    one.commit(Disk).expect("a device");
    assert!(get(&store, &tree, b"a").is_some_and(|value| value == long[..3 << 20]));
}

#[test]
fn values_become_large_and_small_again_and_that_is_undone() {
    let (store, tree) = store();
    let sizes = [0, 2048, 2049, 30_000, 100, 9000, 8000];
    let values = sizes.map(|bytes| vec![0xFE; bytes]);
    for value in &values {
        let mut one = store.begin();
        one.put(&tree, b"a", value).expect("room");
        one.commit(Memory).expect("a log");
        for other in &values {
            let mut one = store.begin();
            assert!(one.delete(&tree, b"a").expect("room"));
            one.put(&tree, b"a", other).expect("room");
            assert!(one.update(&tree, b"a", |value| value.push(1)).expect("room"));
            assert_eq!(
                one.get(&tree, b"a").expect("pages").map(|v| v.len()),
                Some(other.len() + 1)
            );
            one.abort().expect("undone");
            assert_eq!(get(&store, &tree, b"a").as_ref(), Some(value));
        }
    }
    let found = store.begin().scan::<&[u8]>(&tree, .., Direction::Up).next();
    assert_eq!(found.expect("a key").expect("pages").1, values[6]);
}

#[test]
fn a_tree_is_the_same_whenever_its_name_is_told() {
    let (store, tree) = store();
    assert_eq!(store.tree("accounts").expect("a tree"), tree);
    let other = store.tree("branches").expect("a tree");
    assert_ne!(other, tree);
    let mut one = store.begin();
    one.put(&tree, b"a", b"1").expect("room");
    one.put(&other, b"a", b"2").expect("room");
    one.commit(Memory).expect("a log");
    assert_eq!(get(&store, &tree, b"a"), Some(b"1".to_vec()));
    assert_eq!(get(&store, &other, b"a"), Some(b"2".to_vec()));
}

#[test]
fn transactions_that_depend_on_one_another_are_committed_in_that_order() {
    let (store, tree) = store();
    let mut at = None;
    for count in 0..10_u8 {
        let mut one = store.begin();
        if count % 3 == 0 {
            one.get(&tree, b"a").expect("a page");
        } else {
            one.put(&tree, b"a", &[count]).expect("room");
        }
        let committed = one.commit(if count % 2 == 0 { Memory } else { Disk }).expect("a log");
        assert!(at <= Some(committed.at));
        at = Some(committed.at);
    }
}

#[test]
fn more_than_the_pool_and_the_ring_hold_goes_through() {
    let (store, tree) = store();
    for chunk in 0..40_u32 {
        let mut one = store.begin();
        for key in chunk * 20..(chunk + 1) * 20 {
            one.put(&tree, &key.to_be_bytes(), &[key as u8; 1000]).expect("room");
        }
        one.commit(Memory).expect("a log");
    }
    for key in 0..800_u32 {
        assert_eq!(get(&store, &tree, &key.to_be_bytes()), Some(vec![key as u8; 1000]));
    }
}
