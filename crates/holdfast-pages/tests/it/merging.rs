//! Wide runs say what the narrow ones said, and these stay until that is sure.

use std::path::Path;

use holdfast_io::Files;
use holdfast_io::fake::{ENOSPC, Effect, Fault, Mood, Operation, Random};
use holdfast_pages::{Archive, MergeError, PageNumber, RunFault};

use crate::archiving::named;
use crate::cleaning::{after_power_cut, archive, check_found};
use crate::support::{replay, tag};
use crate::toy::{PAGES, Store};

/// Runs that become one.
const RUNS: usize = 16;

fn merge(store: &Store) -> Result<(), MergeError> {
    while store.pages.merge()? {}
    Ok(())
}

/// A store with so many runs, none of them merged, and no page in its page file.
fn with_runs(seed: u64, runs: usize) -> Store {
    let (mut store, mut random) = (Store::new(seed), Random::new(seed));
    for number in (1..=PAGES).map(PageNumber) {
        store.put(number, &mut random).expect("it fits");
    }
    for _ in 0..runs {
        for _ in 0..4 {
            store.put(PageNumber(1 + random.below(PAGES)), &mut random).expect("it fits");
        }
        store.pages.archive_all().expect("the disk is sound");
    }
    store
}

fn names(store: &Store) -> Vec<String> {
    let paths = named(&store.files, "archive", "run-");
    paths.iter().map(|path| path.to_string_lossy()["archive/run-".len()..][..1].into()).collect()
}

#[test]
fn runs_become_wide_ones_and_pages_are_as_they_were() {
    let mut store = with_runs(1, RUNS - 1);
    assert!(!store.pages.merge().expect("there is nothing to do"));
    for _ in 0..RUNS {
        archive(&mut store, &mut Random::new(1), 1);
    }
    merge(&store).expect("the disk is sound");
    assert_eq!(names(&store), [vec!["0"; RUNS - 1], vec!["1"]].concat());
    check_found(&store).expect("the wide run has what they had");
    let store = after_power_cut(&store);
    assert_eq!(names(&store), [vec!["0"; RUNS - 1], vec!["1"]].concat());
    check_found(&store).expect("the wide run has what they had");
}

#[test]
fn wide_runs_become_wider_ones() {
    let store = with_runs(2, RUNS * RUNS);
    merge(&store).expect("the disk is sound");
    assert_eq!(names(&store), ["2"]);
    check_found(&store).expect("the wide run has what they had");
}

#[test]
fn a_scan_keeps_its_runs() {
    let store = with_runs(3, RUNS);
    let archive_files = store.files.below(Path::new("archive")).expect("it is there");
    let before = Archive::open(&archive_files, tag()).expect("nothing is missing");
    let scans = before.runs().iter().map(|run| run.scan(PageNumber(1)).expect("it is whole"));
    let mut scans: Vec<_> = scans.collect();
    merge(&store).expect("the disk is sound");
    assert_eq!(names(&store), ["1"]);
    for scan in &mut scans {
        while scan.current().is_some() {
            scan.advance().expect("it is still there");
        }
    }
}

#[test]
fn a_wide_run_that_is_not_as_it_was_written_replaces_nothing() {
    let store = with_runs(4, RUNS);
    assert!(store.pages.merge().expect("the disk is sound"), "it is written");
    let wide = &named(&store.files, "archive", "run-1-")[0];
    let bytes = store.files.metadata(wide).expect("it is there").size_bytes;
    store.files.flip_bit(wide, 8 * (bytes - 200)).expect("it is there");
    let found = merge(&store);
    assert!(matches!(found, Err(MergeError::Reread(RunFault::Damaged(_)))), "{found:?}");
    assert_eq!(names(&store), vec!["0"; RUNS]);
    check_found(&store).expect("nothing is missing");
    merge(&store).expect("the disk is sound now");
    assert_eq!(names(&store), ["1"]);
    check_found(&store).expect("nothing is missing");
}

#[test]
fn a_damaged_run_and_a_full_disk_are_told_and_nothing_is_removed() {
    let store = with_runs(5, RUNS);
    let full = Effect::Errno(ENOSPC);
    store.files.fail(Fault { operation: Operation::Write, skip: 1, effect: full });
    let found = merge(&store);
    assert!(matches!(found, Err(MergeError::Write(_))), "{found:?}");
    let run = &named(&store.files, "archive", "run-0-")[7];
    store.files.flip_bit(run, 8 * 30).expect("it is there");
    let found = merge(&store);
    assert!(matches!(found, Err(MergeError::Archive(_))), "{found:?}");
    assert_eq!(named(&store.files, "archive", "run-0-").len(), RUNS);
}

/// A merge that is cut at this operation. False if it was through before.
fn cut_at(operation: u64, mood: Mood) -> Result<bool, String> {
    let store = with_runs(6, RUNS);
    store.files.cut_power_at(store.files.operations() + operation);
    let through = merge(&store).is_ok();
    let disk = store.files.after_power_cut_in(mood, operation);
    let found = Store::open(&disk, store.model.clone())?;
    check_found(&found)?;
    merge(&found).map_err(|error| error.to_string())?;
    check_found(&found)?;
    if names(&found) == ["1"] { Ok(!through) } else { Err(format!("{:?}", names(&found))) }
}

#[test]
fn a_power_cut_at_any_operation_of_a_merge_loses_nothing() {
    for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter] {
        let mut operation = 1;
        let again = || replay("a_power_cut_at_any_operation_of_a_merge", 6);
        while cut_at(operation, mood)
            .unwrap_or_else(|error| panic!("operation {operation}, {mood:?}: {error}\n{}", again()))
        {
            operation += 1;
        }
        assert!(operation > RUNS as u64, "a merge has more operations than {operation}");
    }
}
