//! Transactions that keep what they change to themselves until they commit.

use holdfast_store::Durability::{Disk, Memory};
use holdfast_store::{CommitError, Direction, Store, Transaction, TransactionError, Tree};

use crate::support::{cut, machine, open, settle, sound};

fn store() -> (Store, Tree) {
    let (store, _) = open(&machine(1));
    let tree = store.tree("accounts").expect("a tree");
    (store, tree)
}

fn put_all(store: &Store, tree: &Tree, keys: &[&str]) {
    let mut one = store.begin();
    for key in keys {
        one.put(tree, key.as_bytes(), key.as_bytes()).expect("room");
    }
    one.commit(Memory).expect("a log");
}

fn keys(one: &mut Transaction<'_>, tree: &Tree, direction: Direction) -> Vec<String> {
    let scan = one.scan::<&[u8]>(tree, .., direction);
    scan.map(|found| String::from_utf8(found.expect("pages").0).expect("text")).collect()
}

#[test]
fn it_sees_what_it_has_changed_and_nobody_else_does() {
    let (store, tree) = store();
    put_all(&store, &tree, &["b", "d", "f"]);
    let mut one = store.begin_redo_only();
    one.put(&tree, b"a", b"1").expect("room");
    one.put(&tree, b"g", b"1").expect("room");
    assert!(one.delete(&tree, b"d").expect("pages"));
    assert!(!one.delete(&tree, b"d").expect("pages"));
    assert!(one.insert(&tree, b"e", b"1").expect("pages"));
    assert!(!one.insert(&tree, b"b", b"1").expect("pages"));
    assert!(one.update(&tree, b"b", |value| value.push(b'!')).expect("pages"));
    assert_eq!(one.get(&tree, b"b").expect("pages").as_deref(), Some(&b"b!"[..]));
    assert_eq!(one.get(&tree, b"d").expect("pages"), None);
    assert_eq!(keys(&mut one, &tree, Direction::Up), ["a", "b", "e", "f", "g"]);
    assert_eq!(keys(&mut one, &tree, Direction::Down), ["g", "f", "e", "b", "a"]);
    let busy = store.begin_impatient().get(&tree, b"a");
    assert!(matches!(busy, Err(TransactionError::Busy(_))), "{busy:?}");
    one.commit(Memory).expect("a log");
    assert_eq!(keys(&mut store.begin(), &tree, Direction::Up), ["a", "b", "e", "f", "g"]);
}

#[test]
fn it_goes_back_to_a_savepoint_and_leaves_nothing_when_it_is_aborted() {
    let (store, tree) = store();
    put_all(&store, &tree, &["b"]);
    let mut one = store.begin_redo_only();
    one.put(&tree, b"b", b"1").expect("room");
    let savepoint = one.savepoint();
    one.put(&tree, b"b", b"2").expect("room");
    one.put(&tree, b"c", b"2").expect("room");
    one.roll_back_to(savepoint).expect("it is there");
    assert_eq!(one.get(&tree, b"b").expect("pages").as_deref(), Some(&b"1"[..]));
    assert_eq!(keys(&mut one, &tree, Direction::Up), ["b"]);
    one.abort().expect("nothing is to be undone");
    let found = store.begin().get(&tree, b"b").expect("pages");
    assert_eq!(found.as_deref(), Some(&b"b"[..]));
}

#[test]
fn what_had_not_committed_leaves_no_loser() {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("accounts").expect("a tree");
    put_all(&store, &tree, &["b"]);
    let (mut one, mut other) = (store.begin_redo_only(), store.begin_redo_only());
    one.put(&tree, b"c", &[1; 100_000]).expect("room");
    other.put(&tree, b"d", &[1; 3000]).expect("room");
    other.commit(Disk).expect("a device");
    store.sync().expect("a device");
    let files = cut(&files);
    drop(one);
    drop(store);
    let (store, recovery) = open(&files);
    assert_eq!(recovery.losers, 0);
    assert_eq!(keys(&mut store.begin(), &tree, Direction::Up), ["b", "d"]);
}

#[test]
fn it_splits_as_many_leaves_as_it_has_to() {
    let (store, tree) = store();
    put_all(&store, &tree, &["00", "99"]);
    let mut one = store.begin_redo_only();
    let mut wanted = vec!["00".to_owned()];
    for number in 0..18 {
        let key = format!("01{number:02}");
        one.put(&tree, key.as_bytes(), &[7; 1000]).expect("room");
        wanted.push(key);
    }
    wanted.push("99".to_owned());
    one.commit(Disk).expect("a device");
    assert_eq!(keys(&mut store.begin(), &tree, Direction::Up), wanted);
    settle(&store);
    sound(&store);
}

#[test]
fn one_that_is_too_long_for_the_log_or_the_pool_is_told_and_changes_nothing() {
    let (store, tree) = store();
    let too_long = |bytes: usize, count: usize| {
        let mut one = store.begin_redo_only();
        for number in 0..count {
            one.put(&tree, &number.to_be_bytes(), &vec![7; bytes]).expect("room");
        }
        one.commit(Memory).expect_err("too long")
    };
    let error = too_long(1000, 500);
    let told = matches!(
        error,
        CommitError::TooLarge | CommitError::NotDone(TransactionError::PoolTooSmall)
    );
    assert!(told, "{error:?}");
    assert!(keys(&mut store.begin(), &tree, Direction::Up).is_empty());
    put_all(&store, &tree, &["b"]);
    assert_eq!(keys(&mut store.begin(), &tree, Direction::Up), ["b"]);
    sound(&store);
}

#[test]
fn a_reader_of_the_gap_keeps_it_from_committing() {
    let (store, tree) = store();
    put_all(&store, &tree, &["b", "f"]);
    let (mut one, mut reader) = (store.begin_redo_only_impatient(), store.begin());
    one.put(&tree, b"d", b"1").expect("room");
    assert_eq!(keys(&mut reader, &tree, Direction::Up), ["b", "f"]);
    let told = one.commit(Memory);
    let is_busy = matches!(told, Err(CommitError::NotDone(TransactionError::Busy(_))));
    assert!(is_busy, "{told:?}");
    assert_eq!(keys(&mut reader, &tree, Direction::Up), ["b", "f"]);
}
