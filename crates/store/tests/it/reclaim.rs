//! Pages that a crash has left to nobody become free, and no others do.

use std::collections::BTreeSet;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use holdfast_io::Files;
use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation};
use holdfast_pages::canary::{Invariant, switch_off};
use holdfast_store::Durability::{Disk, Memory};
use holdfast_store::{
    PageNumber, ReclaimError, Service, Store, Transaction, TransactionError, Tree,
};

use crate::support::{cut, machine, open, overwrite, settle, sound};

const KEYS: u32 = 12;
/// Every third value has pages of its own, and all of them more than the pool.
const LARGE_BYTES: usize = 100_000;

/// Gives keys from 0 on values that are filled so.
fn put_all(one: &mut Transaction<'_>, tree: &Tree, fill: u8) -> Result<(), TransactionError> {
    (0..KEYS).try_for_each(|key| {
        let bytes = if key.is_multiple_of(3) { LARGE_BYTES } else { 300 };
        one.put(tree, &key.to_be_bytes(), &vec![fill; bytes])
    })
}

/// What all values are filled with, for somebody who waits for nobody.
fn filled_with(store: &Store, tree: &Tree) -> u8 {
    let mut reading = store.begin_impatient();
    let values = (0..KEYS).flat_map(|key| {
        let value = reading.get(tree, &key.to_be_bytes()).expect("nobody is at it");
        value.unwrap_or_else(|| panic!("key {key} is there"))
    });
    let fills: Vec<_> = BTreeSet::from_iter(values).into_iter().collect();
    assert_eq!(fills.len(), 1, "all are of one transaction: {fills:?}");
    fills[0]
}

fn unreached(store: &Store) -> Vec<PageNumber> {
    sound(store).unreached
}

/// A store that is filled with 1, durably.
fn filled() -> (FakeFiles, Store, Tree) {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    let mut one = store.begin();
    put_all(&mut one, &tree, 1).expect("there is room");
    one.commit(Memory).expect("there is room");
    store.sync().expect("the machine is well");
    (files, store, tree)
}

fn put_largest(store: &Store, tree: &Tree) -> Result<(), TransactionError> {
    store.begin().put(tree, b"never", &[2; 1 << 20])
}

/// A machine with such a store whose power was cut while a large value was on its way.
fn left_behind() -> (FakeFiles, Tree) {
    let (files, store, tree) = filled();
    let before = files.operations();
    let mut one = store.begin();
    one.put(&tree, b"never", &[2; 1 << 20]).expect("there is room");
    let middle = (before + files.operations()) / 2;
    drop(one);
    let (files, store, tree) = filled();
    files.cut_power_at(middle);
    put_largest(&store, &tree).expect_err("there is no power");
    (files.after_power_cut_in(Mood::KeepAll, 1), tree)
}

#[test]
fn pages_that_a_crash_left_to_nobody_are_free_again_and_are_used() {
    let (files, tree) = left_behind();
    let (mut store, _) = open(&files);
    settle(&store);
    let lost = unreached(&store);
    assert!(lost.len() * 8192 > LARGE_BYTES, "{lost:?}");
    assert_eq!(store.reclaim().expect("the trees are sound"), lost.len() as u64);
    assert_eq!((unreached(&store), store.reclaim().expect("the trees are sound")), (vec![], 0));
    assert_eq!(filled_with(&store, &tree), 1);
    let pages = store.stat().pages;
    let mut one = store.begin();
    one.put(&tree, &0_u32.to_be_bytes(), &[1; LARGE_BYTES]).expect("there is room");
    one.commit(Memory).expect("there is room");
    assert_eq!(store.stat().pages, pages, "no new page was needed");
    store.sync().expect("the machine is well");
    drop(store);
    let (store, _) = open(&cut(&files));
    assert_eq!((filled_with(&store, &tree), unreached(&store)), (1, vec![]));
}

/// A way to change all values, or to go back to what they were. False if it was told of an error.
type Way = fn(&Store, &Tree) -> bool;

fn commit(store: &Store, tree: &Tree) -> bool {
    let mut one = store.begin();
    put_all(&mut one, tree, 2).is_ok() && one.commit(Memory).is_ok()
}

fn abort(store: &Store, tree: &Tree) -> bool {
    let mut one = store.begin();
    put_all(&mut one, tree, 2).is_ok() && one.abort().is_ok()
}

fn commit_redo_only(store: &Store, tree: &Tree) -> bool {
    let mut one = store.begin_redo_only();
    put_all(&mut one, tree, 2).is_ok() && one.commit(Memory).is_ok()
}

/// Cuts the power at every I/O of it. Returns how many pages were nobody's then, at most.
fn cut_everywhere(way: Way) -> usize {
    let (from, _, tree) = filled();
    let mut unreached_max = 0;
    for at in 1.. {
        let files = from.after_power_cut_in(Mood::KeepAll, at);
        let (store, _) = open(&files);
        let at = files.operations() + at;
        files.cut_power_at(at);
        let is_done = way(&store, &tree) && store.sync().is_ok();
        drop(store);
        for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Subset] {
            let (mut store, _) = open(&files.after_power_cut_in(mood, at));
            while store.step(Service::Undo).expect("the machine is well") {}
            unreached_max = unreached_max.max(unreached(&store).len());
            store.reclaim().expect("the trees are sound");
            let found = (filled_with(&store, &tree), unreached(&store));
            assert!(found.0 < 3 && found.1.is_empty(), "cut {at} {mood:?}: {found:?}");
        }
        if is_done && files.operations() < at {
            break;
        }
    }
    unreached_max
}

#[test]
fn a_power_cut_at_any_io_of_a_transaction_costs_no_page_however_that_ends() {
    let ways: [Way; 3] = [commit, abort, commit_redo_only];
    for unreached_max in ways.map(cut_everywhere) {
        assert!(unreached_max > 0, "it was never cut where it mattered");
    }
}

#[test]
fn old_values_that_could_not_be_freed_behind_a_commit_are_freed() {
    let (files, store, tree) = filled();
    settle(&store);
    store.close().expect("the machine is well");
    let (store, _) = open(&files);
    let mut one = store.begin();
    put_all(&mut one, &tree, 2).expect("there is room");
    refuse_reads(&files, 0);
    one.commit(Disk).expect("nothing has to be read for that");
    files.forget_faults();
    drop(store);
    let (mut store, _) = open(&cut(&files));
    let lost = unreached(&store);
    assert!(!lost.is_empty() && filled_with(&store, &tree) == 2);
    assert_eq!(store.reclaim().expect("the trees are sound"), lost.len() as u64);
    assert_eq!((filled_with(&store, &tree), unreached(&store)), (2, vec![]));
}

/// A store whose only loser has changed all values.
fn with_loser() -> (Store, Tree) {
    let (files, store, tree) = filled();
    let mut one = store.begin();
    put_all(&mut one, &tree, 2).expect("there is room");
    store.sync().expect("the machine is well");
    mem::forget(one);
    drop(store);
    let (store, recovery) = open(&cut(&files));
    assert_eq!(recovery.losers, 1);
    assert!(!unreached(&store).is_empty(), "old values are reached by who undoes alone");
    (store, tree)
}

fn reclaim_beside_loser() {
    let (mut store, tree) = with_loser();
    store.reclaim().expect("the trees are sound");
    assert_eq!((filled_with(&store, &tree), unreached(&store)), (1, vec![]));
}

#[test]
fn what_a_loser_needs_is_not_freed() {
    reclaim_beside_loser();
}

#[test]
fn freeing_what_a_loser_needs_would_be_noticed() {
    let _off = switch_off(Invariant::NobodyNeedsWhatIsReclaimed);
    assert!(catch_unwind(AssertUnwindSafe(reclaim_beside_loser)).is_err());
}

#[test]
fn a_transaction_that_was_forgotten_keeps_what_it_needs() {
    let begins: [fn(&Store) -> Transaction<'_>; 2] = [Store::begin, Store::begin_redo_only];
    for begin in begins {
        let (files, mut store, tree) = filled();
        let mut one = begin(&store);
        put_all(&mut one, &tree, 2).expect("there is room");
        mem::forget(one);
        let found = store.reclaim();
        assert!(matches!(found, Err(ReclaimError::Running)), "{found:?}");
        store.sync().expect("the machine is well");
        drop(store);
        let (mut store, _) = open(&cut(&files));
        store.reclaim().expect("the trees are sound");
        assert_eq!((filled_with(&store, &tree), unreached(&store)), (1, vec![]));
    }
}

#[test]
fn nothing_is_freed_where_a_tree_is_damaged() {
    let (files, _) = left_behind();
    let (store, _) = open(&files);
    settle(&store);
    store.close().expect("the machine is well");
    let pages = files.metadata(Path::new("pages")).expect("it is there").size_bytes as usize;
    overwrite(&files, "pages", &vec![7; pages]);
    for run in files.read_dir(Path::new("archive")).expect("a directory") {
        let name = Path::new("archive").join(String::from_utf8(run.name).expect("a name"));
        files.flip_bit(&name, 8 * 40).expect("it is there");
    }
    let (mut store, _) = open(&files);
    let before = store.stat();
    let found = store.reclaim();
    assert!(matches!(found, Err(ReclaimError::Tree(TransactionError::Page(_)))), "{found:?}");
    assert_eq!(store.stat().next, before.next, "nothing was said");
}

#[test]
fn a_full_log_is_told_and_the_rest_is_freed_when_there_is_room() {
    let (files, tree) = left_behind();
    let (mut store, _) = open(&files);
    settle(&store);
    files.set_capacity_bytes(Some(1));
    put_largest(&store, &tree).expect_err("there is no room");
    let found = store.reclaim();
    assert!(matches!(found, Err(ReclaimError::Undo(TransactionError::Full(_)))), "{found:?}");
    files.set_capacity_bytes(None);
    assert!(store.reclaim().expect("there is room") > 0);
    assert_eq!((filled_with(&store, &tree), unreached(&store)), (1, vec![]));
}

/// Lets the disk give nothing after so many reads.
fn refuse_reads(files: &FakeFiles, reads: u64) {
    let fault = Fault { operation: Operation::Read, skip: reads, effect: Effect::Errno(EIO) };
    // As often as it may be asked by whoever goes on with other pages.
    (0..1000).for_each(|_| files.fail(fault));
}

/// How far it comes while the disk gives nothing after so many reads, and how many pages are still
/// nobody's when the power is cut then.
fn reclaim_with_reads(
    from: &FakeFiles,
    tree: &Tree,
    reads: u64,
) -> (Result<u64, ReclaimError>, usize) {
    let files = from.after_power_cut_in(Mood::KeepAll, 1);
    let (mut store, _) = open(&files);
    refuse_reads(&files, reads);
    let found = store.reclaim();
    files.forget_faults();
    store.sync().expect("the machine is well");
    drop(store);
    let (mut store, _) = open(&cut(&files));
    let left = unreached(&store).len();
    assert_eq!(store.reclaim().expect("the trees are sound"), left as u64);
    assert_eq!((filled_with(&store, tree), unreached(&store)), (1, vec![]), "{reads} reads");
    (found, left)
}

#[test]
fn whatever_ends_it_the_rest_is_freed_by_the_next_call() {
    let (files, tree) = left_behind();
    let (store, _) = open(&files);
    settle(&store);
    store.close().expect("the machine is well");
    let (mut in_trees, mut in_the_middle) = (0, 0);
    for reads in (0..).step_by(7) {
        match reclaim_with_reads(&files, &tree, reads) {
            (Err(ReclaimError::Tree(_)), left) => {
                assert!(left > 0, "nothing is freed before all trees are sound");
                in_trees += 1;
            }
            (Err(ReclaimError::Free(_)), left) => in_the_middle += usize::from(left > 0),
            (Ok(_), left) => {
                assert_eq!(left, 0);
                break;
            }
            found => panic!("{found:?}"),
        }
    }
    assert!(in_trees > 0 && in_the_middle > 0, "it ended nowhere: {in_trees} {in_the_middle}");
}
