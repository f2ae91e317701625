//! Snapshots, one property at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_io::fake::{EIO, Effect, FakeEntropy, Fault, Operation, Random};
use holdfast_store::Durability::{Disk, Memory};
use holdfast_store::{
    At, CommitError, Config, Direction, Services, Snapshot, Store, TransactionError, Tree,
    restore_at,
};

use crate::model::Contents;
use crate::support::{config, cut, factor, machine, open, place, place_with, settle, sound};

/// Values whose sum stays.
const ACCOUNTS: u64 = 40;

fn key(at: u64) -> [u8; 8] {
    at.to_be_bytes()
}

fn put_all(store: &Store, tree: &Tree, keys: std::ops::Range<u64>, value: u8, bytes: usize) {
    let mut one = store.begin();
    keys.for_each(|at| one.put(tree, &key(at), &vec![value; bytes]).expect("room"));
    one.commit(Memory).expect("a log");
}

fn shown(snapshot: &Snapshot<'_>, tree: &Tree) -> Contents {
    let scan = snapshot.scan::<&[u8]>(tree, .., Direction::Up);
    scan.map(|found| found.expect("pages")).collect()
}

fn all(keys: std::ops::Range<u64>, value: u8, bytes: usize) -> Contents {
    keys.map(|at| (key(at).to_vec(), vec![value; bytes])).collect()
}

#[test]
fn a_snapshot_waits_for_nobody_and_nobody_for_it() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    put_all(&store, &tree, 0..200, 1, 300);
    // It has locked what it changes before there is a snapshot.
    let mut running = store.begin_impatient();
    (0..50).for_each(|at| running.put(&tree, &key(at), b"not yet").expect("room"));
    running.delete(&tree, &key(60)).expect("a key");
    running.insert(&tree, &key(999), b"not yet").expect("room");
    let snapshot = store.snapshot().expect("a log");
    assert_eq!(shown(&snapshot, &tree), all(0..200, 1, 300));
    let mut scan = snapshot.scan::<&[u8]>(&tree, .., Direction::Down);
    assert_eq!(scan.next().expect("a key").expect("pages").0, key(199));
    running.commit(Memory).expect("a log");
    // It locks what the snapshot has read, and where it has read that nothing is.
    let mut other = store.begin_impatient();
    let deleted = other.delete_range(&tree, ..key(200)).expect("nobody has it");
    assert_eq!(deleted, 199);
    (200..400).for_each(|at| other.put(&tree, &key(at), &[3; 300]).expect("room"));
    other.commit(Memory).expect("a log");
    settle(&store);
    let rest: Vec<_> = scan.map(|found| found.expect("pages").0).collect();
    assert!(rest.into_iter().eq((0..199).rev().map(key)));
    assert_eq!(shown(&snapshot, &tree), all(0..200, 1, 300));
    assert_eq!(snapshot.get(&tree, &key(60)).expect("pages"), Some(vec![1; 300]));
    assert_eq!(snapshot.get(&tree, &key(999)).expect("pages"), None);
    let newer = shown(&store.snapshot().expect("a log"), &tree);
    assert_eq!(newer.len(), 201);
    assert_eq!(newer.get(&key(999)[..]), Some(&b"not yet".to_vec()));
}

#[test]
fn who_sees_nothing_but_snapshots_sees_whole_transactions_of_all_trees() {
    let (store, _) = open(&machine(2));
    let trees = ["left", "right"].map(|name| store.tree(name).expect("a tree"));
    for round in 0..60_u8 {
        let mut one = if round % 2 == 0 { store.begin() } else { store.begin_redo_only() };
        for tree in &trees {
            (0..5).for_each(|at| one.put(tree, &key(at), &[round; 200]).expect("room"));
        }
        let snapshot = store.snapshot().expect("a log");
        one.commit(Memory).expect("a log");
        let [left, right] = trees.map(|tree| shown(&snapshot, &tree));
        assert_eq!(left, right);
        let before = round.checked_sub(1);
        assert_eq!(left, before.map_or(Contents::new(), |before| all(0..5, before, 200)));
    }
}

#[test]
fn a_snapshot_ends_with_an_error_when_more_has_changed_than_is_kept() {
    let config = Config { snapshot_bytes: 64 << 10, ..config() };
    let (store, _) = Store::open_at(place(&machine(3)), &config).expect("the store opens");
    let tree = store.tree("keys").expect("a tree");
    put_all(&store, &tree, 0..400, 1, 300);
    let snapshot = store.snapshot().expect("a log");
    let mut scan = snapshot.scan::<&[u8]>(&tree, .., Direction::Up);
    assert!(scan.next().expect("a key").is_ok());
    for at in 0..400 {
        put_all(&store, &tree, at..at + 1, 2, 300);
        let kept = store.stat().snapshot_bytes;
        assert!(kept <= 64 << 10, "{kept} bytes are kept");
        if store.stat().snapshots == 0 {
            break;
        }
        assert_eq!(snapshot.get(&tree, &key(at)).expect("pages"), Some(vec![1; 300]));
    }
    let got = snapshot.get(&tree, &key(399));
    assert!(matches!(got, Err(TransactionError::SnapshotTooOld)), "{got:?}");
    let told = got.expect_err("it is over").to_string();
    assert!(told.contains("take a new one"), "{told}");
    let rest: Vec<_> = scan.collect();
    assert!(matches!(rest.last(), Some(Err(TransactionError::SnapshotTooOld))), "{rest:?}");
    assert!(rest[..rest.len() - 1].iter().flatten().all(|(_, value)| *value == [1; 300]));
    assert_eq!(store.stat().snapshot_bytes, 0);
    // Others go on, and one that changes the same again and again costs no more.
    let another = store.snapshot().expect("a log");
    for value in 0..200 {
        put_all(&store, &tree, 0..50, value, 300);
    }
    assert_eq!(shown(&another, &tree).len(), 400);
}

#[test]
fn what_a_snapshot_held_goes_with_it() {
    let (store, _) = open(&machine(4));
    let tree = store.tree("values").expect("a tree");
    put_all(&store, &tree, 0..3, 1, 30_000);
    put_all(&store, &tree, 3..200, 1, 300);
    let (old, before) = (store.snapshot().expect("a log"), store.stat());
    for value in 2..6 {
        put_all(&store, &tree, 0..3, value, 30_000);
    }
    let newer = store.snapshot().expect("a log");
    let mut one = store.begin();
    assert_eq!(one.delete_range(&tree, ..key(150)).expect("pages"), 150);
    one.commit(Memory).expect("a log");
    settle(&store);
    assert!(sound(&store).ghosts == 150 && store.stat().pages > before.pages);
    let large = |value| all(0..3, value, 30_000).into_iter();
    let small = || all(3..200, 1, 300).into_iter();
    assert!(shown(&old, &tree).into_iter().eq(large(1).chain(small())));
    assert!(shown(&newer, &tree).into_iter().eq(large(5).chain(small())));
    drop(old);
    assert!(shown(&newer, &tree).into_iter().eq(large(5).chain(small())));
    drop(newer);
    settle(&store);
    let (stat, found) = (store.stat(), sound(&store));
    assert_eq!((stat.snapshots, stat.snapshot_bytes), (0, 0));
    assert_eq!((found.keys, found.ghosts, found.unreached), (51, 0, vec![]));
    assert_eq!(stat.free_pages + found.pages, stat.pages);
}

#[test]
fn what_comes_and_goes_behind_all_snapshots_leaves_nothing_with_them() {
    let (store, _) = open(&machine(14));
    let tree = store.tree("queue").expect("a tree");
    put_all(&store, &tree, 0..2, 1, 300);
    let old = store.snapshot().expect("a log");
    put_all(&store, &tree, 2..4, 1, 300);
    let newer = store.snapshot().expect("a log");
    let (mut kept, mut next) = (Vec::new(), 4);
    for round in 0..4 {
        for _ in 0..300 {
            put_all(&store, &tree, next..next + 1, 2, if next % 50 == 0 { 9000 } else { 300 });
            let mut one = store.begin();
            let head = one.scan::<&[u8]>(&tree, .., Direction::Up).next();
            let (head, _) = head.expect("a job").expect("pages");
            assert!(one.delete(&tree, &head).expect("pages"));
            one.commit(Memory).expect("a log");
            next += 1;
        }
        settle(&store);
        // Those that were there when the snapshots were taken, and none of the 1200 others.
        assert_eq!(sound(&store).ghosts, 4, "round {round}");
        kept.push(store.stat().snapshot_bytes);
    }
    // Large values are in it, until the snapshots end.
    assert!(kept[3] < kept[0] + 18 * 9000 + 300, "{kept:?} bytes are kept");
    assert_eq!(shown(&old, &tree), all(0..2, 1, 300));
    assert_eq!(shown(&newer, &tree), all(0..4, 1, 300));
    drop(newer);
    settle(&store);
    assert_eq!((sound(&store).ghosts, shown(&old, &tree)), (2, all(0..2, 1, 300)));
}

#[test]
fn nothing_is_left_of_a_snapshot_by_a_crash_but_pages_to_reclaim() {
    let files = machine(5);
    let (store, _) = open(&files);
    let tree = store.tree("values").expect("a tree");
    put_all(&store, &tree, 0..3, 1, 30_000);
    let snapshot = store.snapshot().expect("a log");
    put_all(&store, &tree, 0..3, 2, 30_000);
    store.sync().expect("a device");
    assert_eq!(shown(&snapshot, &tree), all(0..3, 1, 30_000));
    let (mut store, _) = open(&cut(&files));
    assert_eq!(store.stat().snapshots, 0);
    assert_eq!(shown(&store.snapshot().expect("a log"), &tree), all(0..3, 2, 30_000));
    assert!(!sound(&store).unreached.is_empty());
    assert!(store.reclaim().expect("it is alone") > 0);
    assert_eq!(sound(&store).unreached, vec![]);
}

#[test]
fn a_snapshot_is_what_a_store_restored_to_its_place_has() {
    let files = machine(6);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    let mut moments = Vec::new();
    for round in 0..8_u8 {
        put_all(&store, &tree, u64::from(round) * 7..100, round, 200);
        let mut running = store.begin();
        (20..40).for_each(|at| running.put(&tree, &key(at), b"not yet").expect("room"));
        assert_eq!(running.delete_range(&tree, key(60)..).expect("pages"), 40);
        let snapshot = store.snapshot().expect("a log");
        moments.push((snapshot.at(), shown(&snapshot, &tree)));
        if round % 2 == 0 {
            running.abort().expect("room");
        } else {
            running.commit(Memory).expect("a log");
        }
    }
    store.close().expect("a device");
    for (at, shows) in moments {
        let restored = machine(7);
        restore_at(&place(&files), At::Rsn(at), &place(&restored), &config(), &mut |_| ())
            .expect("it is a moment");
        let (store, _) = open(&restored);
        let tree = store.tree("keys").expect("a tree");
        let mut reading = store.begin();
        let scan = reading.scan::<&[u8]>(&tree, .., Direction::Up);
        let found: Contents = scan.map(|found| found.expect("pages")).collect();
        assert_eq!(found, shows, "at {at}");
    }
}

#[test]
fn losers_of_the_process_before_are_not_shown() {
    let files = machine(8);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    put_all(&store, &tree, 0..50, 1, 300);
    let mut running = store.begin();
    (0..80).for_each(|at| running.put(&tree, &key(at), &[2; 300]).expect("room"));
    store.sync().expect("a device");
    let (store, recovery) = open(&cut(&files));
    assert_eq!(recovery.losers, 1);
    let snapshot = store.snapshot().expect("a log");
    assert_eq!(shown(&snapshot, &tree), all(0..50, 1, 300));
    assert_eq!(store.stat().losers, 1);
    settle(&store);
    assert_eq!((shown(&snapshot, &tree), store.stat().losers), (all(0..50, 1, 300), 0));
    drop(running);
}

#[test]
fn a_snapshot_is_settled_when_all_that_it_shows_is_durable() {
    let files = machine(9);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    put_all(&store, &tree, 0..50, 1, 300);
    let snapshot = store.snapshot().expect("a log");
    snapshot.settle(Memory).expect("a log");
    snapshot.settle(Disk).expect("a device");
    assert!(store.stat().durable >= snapshot.at());
    let (store, _) = open(&cut(&files));
    assert_eq!(shown(&store.snapshot().expect("a log"), &tree), all(0..50, 1, 300));
}

#[test]
fn a_snapshot_that_cannot_be_taken_is_refused_and_leaves_nothing() {
    let files = machine(10);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    put_all(&store, &tree, 0..50, 1, 300);
    let old = store.snapshot().expect("a log");
    let (operation, effect) = (Operation::SyncData, Effect::Errno(EIO));
    files.fail(Fault { operation, skip: 0, effect });
    store.sync().expect_err("the device failed");
    let refused = store.snapshot();
    assert!(matches!(refused, Err(TransactionError::Poisoned(_))), "{refused:?}");
    assert_eq!((shown(&old, &tree), store.stat().snapshots), (all(0..50, 1, 300), 1));
}

#[test]
fn trees_that_were_dropped_before_and_those_of_others_are_refused() {
    let (mut store, _) = open(&machine(11));
    let old = store.tree("keys").expect("a tree");
    put_all(&store, &old, 0..300, 1, 300);
    assert!(store.drop_tree("keys").expect("it is alone"));
    let other = place_with(&machine(12), Arc::new(FakeEntropy::new(9)));
    let (other, _) = Store::open_at(other, &config()).expect("the store opens");
    let strange = other.tree("keys").expect("a tree");
    let snapshot = store.snapshot().expect("a log");
    // While its pages become free.
    settle(&store);
    assert!(matches!(snapshot.get(&old, b"key"), Err(TransactionError::DroppedTree)));
    assert!(matches!(snapshot.get(&strange, b"key"), Err(TransactionError::OtherStore)));
    assert_eq!(snapshot.find_tree("keys").expect("pages"), None);
    let new = store.tree("keys").expect("a tree");
    put_all(&store, &new, 0..300, 2, 300);
    assert_eq!(snapshot.tree_names().expect("pages"), Vec::<String>::new());
    assert_eq!(shown(&snapshot, &new), Contents::new());
    // What the snapshot shows of the old one's name is no tree: its pages are others' by now.
    assert_eq!(sound(&store).unreached, vec![]);
}

/// Moves something between values of which some have pages of their own, so that their sum stays.
fn moved(store: &Store, tree: &Tree, random: &mut Random) -> Result<(), TransactionError> {
    let [from, to] = [random.below(ACCOUNTS), random.below(ACCOUNTS)];
    let mut one = if random.chance(50) { store.begin() } else { store.begin_redo_only() };
    for (at, by) in [(from, 1), (to, -1_i64)] {
        let value = one.get_for_update(tree, &key(at))?.expect("nobody deletes it");
        let mut value = value.clone();
        let sum = i64::from_le_bytes(value[..8].try_into().expect("a number")) + by;
        value[..8].copy_from_slice(&sum.to_le_bytes());
        one.put(tree, &key(at), &value)?;
    }
    match one.commit(Memory) {
        Err(CommitError::NotDone(error)) => Err(error),
        committed => committed.map(drop).map_err(|error| panic!("{error}")),
    }
}

fn sum(snapshot: &Snapshot<'_>, tree: &Tree) -> Result<(u64, i64), TransactionError> {
    let (mut count, mut sum) = (0, 0);
    for found in snapshot.scan::<&[u8]>(tree, .., Direction::Up) {
        let value = found?.1;
        assert!(value.len() == bytes_of(count) && value[8..].iter().all(|byte| *byte == 7));
        count += 1;
        sum += i64::from_le_bytes(value[..8].try_into().expect("a number"));
    }
    Ok((count, sum))
}

fn bytes_of(account: u64) -> usize {
    if account.is_multiple_of(4) { 6000 } else { 500 }
}

#[test]
fn who_reads_while_his_snapshot_ends_reads_what_is_right_or_is_told() {
    let services = Services::Threads;
    let config = Config { snapshot_bytes: 40 << 10, services, pool_bytes: 64 * 8192, ..config() };
    let files = machine(13);
    let (store, _) = Store::open_at(place(&files), &config).expect("the store opens");
    let tree = store.tree("accounts").expect("a tree");
    let mut one = store.begin();
    for account in 0..ACCOUNTS {
        let value = [&0_i64.to_le_bytes()[..], &vec![7; bytes_of(account) - 8]].concat();
        one.put(&tree, &key(account), &value).expect("room");
    }
    one.commit(Memory).expect("a log");
    let (writing, [right, told]) = (AtomicU64::new(2), [AtomicU64::new(0), AtomicU64::new(0)]);
    let read = || {
        while writing.load(Ordering::Relaxed) > 0 {
            let snapshot = store.snapshot().expect("a log");
            for _ in 0..3 {
                match sum(&snapshot, &tree) {
                    Ok(found) => {
                        assert_eq!(found, (ACCOUNTS, 0));
                        right.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(TransactionError::SnapshotTooOld) => {
                        told.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    };
    let write = |seed| {
        let mut random = Random::new(seed);
        for _ in 0..400 * factor() {
            match moved(&store, &tree, &mut random) {
                Ok(()) | Err(TransactionError::Deadlock(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        writing.fetch_sub(1, Ordering::Relaxed);
    };
    std::thread::scope(|threads| {
        for seed in [1, 2] {
            let write = &write;
            threads.spawn(move || write(seed));
            threads.spawn(read);
        }
    });
    println!("{right:?} sums were right, {told:?} were told that the snapshot is over");
    let stat = store.stat();
    assert_eq!((stat.snapshots, stat.snapshot_bytes), (0, 0));
    store.close().expect("a device");
    assert_eq!(sound(&open(&files).0).unreached, vec![]);
}
