//! A store tells what it does.

use holdfast_store::Durability::Disk;
use holdfast_store::{Store, TransactionError, Tree};

use crate::support::{machine, open, settle};

fn fill(store: &Store, tree: &Tree, keys: std::ops::Range<u16>) {
    let mut one = store.begin();
    for key in keys {
        one.put(tree, &key.to_be_bytes(), &[7; 1000]).expect("there is room");
    }
    one.commit(Disk).expect("there is room");
}

#[test]
fn pages_that_are_found_brought_and_sent_away_are_counted() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    fill(&store, &tree, 0..20);
    let before = store.statistics().pool;
    let mut one = store.begin();
    one.get(&tree, &3_u16.to_be_bytes()).expect("pages");
    let after = store.statistics().pool;
    assert_eq!((after.misses, after.evictions), (before.misses, before.evictions));
    assert!(after.hits > before.hits && after.frames == 24, "{after:?}");
    drop(one);
    // Far more than there are frames.
    fill(&store, &tree, 20..400);
    let mut one = store.begin();
    for key in 0..400_u16 {
        assert!(one.get(&tree, &key.to_be_bytes()).expect("pages").is_some());
    }
    let now = store.statistics().pool;
    assert!(now.misses > 20 && now.evictions >= now.misses - 24, "{now:?}");
}

#[test]
fn locks_that_are_had_waited_for_and_refused_are_counted() {
    let (store, _) = open(&machine(1));
    let tree = &store.tree("keys").expect("a tree");
    fill(&store, tree, 0..10);
    let before = store.statistics().locks;
    let (mut one, mut other) = (store.begin(), store.begin());
    let key = |number: u16| number.to_be_bytes();
    one.get_for_update(tree, &key(1)).expect("pages");
    other.get_for_update(tree, &key(2)).expect("pages");
    assert_eq!(store.statistics().locks.held, before.held + 2);
    std::thread::scope(|scope| {
        let store = &store;
        let waiting = scope.spawn(move || one.get_for_update(tree, &key(2)).map(|_| one));
        while store.statistics().locks.waits == before.waits {
            std::thread::yield_now();
        }
        // Until it is in the queue the other one is not refused, and waits itself.
        let refused = other.get_for_update(tree, &key(1)).map(drop);
        let refused = refused.err().map(|_| drop(other));
        let went = waiting.join().expect("it ends");
        let is_deadlock = |error: &TransactionError| matches!(error, TransactionError::Deadlock(_));
        assert!(refused.is_some() || went.is_err_and(|error| is_deadlock(&error)));
    });
    let after = store.statistics().locks;
    assert!(after.waits > before.waits && after.deadlocks == before.deadlocks + 1, "{after:?}");
    assert_eq!(after.held, before.held);
}

#[test]
fn what_is_put_off_is_told_and_becomes_less() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    fill(&store, &tree, 0..60);
    let before = store.statistics();
    assert!(before.unarchived_log_bytes > 60_000 && before.uncleaned_bytes > 60_000, "{before:?}");
    settle(&store);
    fill(&store, &tree, 60..300);
    settle(&store);
    let after = store.statistics();
    assert!(after.archive_bytes > 200_000 && after.written_pages > 20, "{after:?}");
    assert!(after.merge_debt_bytes <= after.archive_bytes, "{after:?}");
    assert!(after.uncleaned_bytes < 150_000, "{after:?}");
}
