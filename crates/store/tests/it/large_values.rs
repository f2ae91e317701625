//! Transactions with values that have pages of their own, far more of them than the log's ring has
//! room for.

use std::collections::BTreeSet;

use holdfast_io::Files;
use holdfast_io::fake::FakeFiles;
use holdfast_store::Durability::Memory;
use holdfast_store::{Store, Transaction, TransactionError, Tree};

use crate::support::{cut, machine, open, settle};

/// Of one transaction: 24 times the ring, and 32 times the pool.
const VALUES: u32 = 6;
const VALUE_BYTES: usize = 1 << 20;

fn put_all(one: &mut Transaction<'_>, tree: &Tree, fill: u8) -> Result<(), TransactionError> {
    let value = vec![fill; VALUE_BYTES];
    (0..VALUES).try_for_each(|key| one.put(tree, &key.to_be_bytes(), &value))
}

/// What all values are filled with; none if there are none.
fn filled_with(store: &Store, tree: &Tree) -> Option<u8> {
    let mut reading = store.begin_impatient();
    let values = (0..VALUES).map(|key| {
        let value = reading.get(tree, &key.to_be_bytes()).expect("nobody is at it")?;
        assert!(value.len() == VALUE_BYTES && value.iter().all(|byte| *byte == value[0]));
        Some(value[0])
    });
    let mut values: Vec<_> = values.collect();
    values.dedup();
    assert_eq!(values.len(), 1, "all are of one transaction");
    values[0]
}

/// Every page that was given is a tree's or free.
fn check(store: &Store) {
    let found = store.verify(&mut |_| {}).expect("the disk is sound");
    let trees = found.trees.as_ref().expect("the trees are sound");
    assert!(found.faults.is_empty() && trees.unreached.is_empty(), "{found:?}");
}

/// A store with such values, committed.
fn filled() -> (FakeFiles, Store, Tree) {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    let mut one = store.begin();
    put_all(&mut one, &tree, 1).expect("there is room");
    one.commit(Memory).expect("there is room");
    (files, store, tree)
}

#[test]
fn a_transaction_may_have_many_times_what_the_ring_has_room_for_however_it_ends() {
    let (files, store, tree) = filled();
    assert_eq!(filled_with(&store, &tree), Some(1));
    let mut one = store.begin();
    put_all(&mut one, &tree, 2).expect("there is room");
    one.abort().expect("there is room");
    assert_eq!(filled_with(&store, &tree), Some(1));
    check(&store);
    let mut one = store.begin();
    let before = one.savepoint();
    put_all(&mut one, &tree, 3).expect("there is room");
    one.roll_back_to(before).expect("there is room");
    put_all(&mut one, &tree, 4).expect("there is room");
    one.commit(Memory).expect("there is room");
    assert_eq!(filled_with(&store, &tree), Some(4));
    check(&store);
    store.sync().expect("the machine is well");
    drop(store);
    let (store, _) = open(&cut(&files));
    assert_eq!(filled_with(&store, &tree), Some(4));
    check(&store);
}

#[test]
fn one_that_a_power_cut_ended_in_the_middle_is_undone() {
    let (files, store, tree) = filled();
    let mut one = store.begin();
    put_all(&mut one, &tree, 2).expect("there is room");
    store.sync().expect("the machine is well");
    std::mem::forget(one);
    drop(store);
    let (store, recovery) = open(&cut(&files));
    assert_eq!(recovery.losers, 1);
    assert_eq!(filled_with(&store, &tree), Some(1));
    check(&store);
}

/// What a transaction was told that puts values, and is aborted then.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Nothing,
    /// The disk is full, and what there was could be undone.
    FullAndAborted,
    /// The disk is full, also for who undoes.
    FullAndLeft,
}

/// Aborts a transaction that puts values, on a disk with room for so many bytes more.
fn abort_with_room_for(bytes: u64) -> Told {
    let (files, store, tree) = filled();
    settle(&store);
    let limit = 1 << 40;
    files.set_capacity_bytes(Some(limit));
    let space = files.space().expect("a disk");
    files.set_capacity_bytes(Some(limit - space.available_bytes + bytes));
    let mut one = store.begin();
    let put = put_all(&mut one, &tree, 2);
    let aborted = one.abort();
    let told = match (put, &aborted) {
        (Ok(()), Ok(())) => Told::Nothing,
        (Err(TransactionError::Full(_)), Ok(())) => Told::FullAndAborted,
        (Err(TransactionError::Full(_)), Err(TransactionError::Full(_))) => Told::FullAndLeft,
        (put, aborted) => panic!("{put:?} {aborted:?}"),
    };
    assert_eq!(store.stat().losers, usize::from(told == Told::FullAndLeft));
    if told == Told::FullAndLeft {
        let got = store.begin_impatient().get(&tree, &0_u32.to_be_bytes());
        assert!(matches!(got, Err(TransactionError::Full(_))), "its keys are locked: {got:?}");
    }
    files.set_capacity_bytes(None);
    // Nobody has to ask for it.
    settle(&store);
    assert_eq!(store.stat().losers, 0);
    assert_eq!(filled_with(&store, &tree), Some(1));
    check(&store);
    let mut one = store.begin();
    put_all(&mut one, &tree, 3).expect("there is room");
    one.commit(Memory).expect("there is room");
    assert_eq!(filled_with(&store, &tree), Some(3));
    check(&store);
    told
}

#[test]
fn one_that_fills_the_disk_is_told_and_is_undone_at_once_or_when_there_is_room() {
    let told: BTreeSet<_> = (0..14).map(|more| abort_with_room_for(more << 20)).collect();
    let all = [Told::Nothing, Told::FullAndAborted, Told::FullAndLeft];
    assert_eq!(told, BTreeSet::from(all), "all of it was tested");
}
