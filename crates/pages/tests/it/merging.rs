//! Wide runs say what the narrow ones said, and these stay until that is sure.

use std::path::Path;

use holdfast_io::Files;
use holdfast_io::fake::{ENOSPC, Effect, FakeFiles, Fault, Mood, Operation, Random};
use holdfast_pages::{
    Archive, At, Keep, MergeError, PageNumber, PagesConfig, RestoreError, Rsn, RunFault, restore,
};

use crate::archiving::named;
use crate::cleaning::{after_power_cut, archive, check_device, check_found, clean, clean_now};
use crate::support::{replay, tag};
use crate::toy::{CONFIG_OF_PAGES, Model, PAGES, Store, directories, new_disk, new_log};

/// Runs that become one; the last run of an archive is never among them.
pub(crate) const RUNS: usize = 16;

pub(crate) fn merge(store: &Store) -> Result<(), MergeError> {
    while store.pages.merge()? {}
    Ok(())
}

/// A store with so many runs to be merged and one more, and no page in its page file.
fn with_runs(seed: u64, runs: usize) -> Store {
    let store = Store::new(seed);
    let mut random = Random::new(seed);
    filled(store, &mut random, runs, 4)
}

/// The store with an archive of so many runs and one more, with so many records each.
pub(crate) fn filled(mut store: Store, random: &mut Random, runs: usize, records: usize) -> Store {
    for number in (1..=PAGES).map(PageNumber) {
        store.put(number, random).expect("it fits");
    }
    for _ in 0..=runs {
        for _ in 0..records {
            store.put(PageNumber(1 + random.below(PAGES)), random).expect("it fits");
        }
        store.pages.archive_all().expect("the disk is sound");
    }
    store
}

pub(crate) fn names(store: &Store) -> Vec<String> {
    let paths = named(&store.files, "archive", "run-");
    paths.iter().map(|path| path.to_string_lossy()["archive/run-".len()..][..1].into()).collect()
}

#[test]
fn runs_become_wide_ones_and_pages_are_as_they_were() {
    let mut store = with_runs(1, RUNS - 1);
    assert!(!store.pages.merge().expect("there is nothing to do"));
    archive(&mut store, &mut Random::new(1), 1);
    merge(&store).expect("the disk is sound");
    assert_eq!(names(&store), ["0", "1"]);
    check_found(&store).expect("the wide run has what they had");
    let store = after_power_cut(&store);
    assert_eq!(names(&store), ["0", "1"]);
    check_found(&store).expect("the wide run has what they had");
}

#[test]
fn wide_runs_become_wider_ones_when_they_are_clean() {
    let store = with_runs(2, RUNS * RUNS);
    merge(&store).expect("the disk is sound");
    assert_eq!(names(&store), [vec!["0"], vec!["1"; RUNS]].concat());
    clean_now(&store).expect("the disk is sound");
    merge(&store).expect("the disk is sound");
    assert_eq!(names(&store), ["0", "2"]);
    store.pages.restore().expect("the disk is sound");
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
    assert_eq!(names(&store), ["0", "1"]);
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
    store.files.flip_bit(wide, 8 * (bytes / 2)).expect("it is there");
    let found = merge(&store);
    assert!(matches!(found, Err(MergeError::Reread(RunFault::Damaged(_)))), "{found:?}");
    assert_eq!(names(&store), vec!["0"; RUNS + 1]);
    check_found(&store).expect("nothing is missing");
    merge(&store).expect("the disk is sound now");
    assert_eq!(names(&store), ["0", "1"]);
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
    assert_eq!(named(&store.files, "archive", "run-0-").len(), RUNS + 1);
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
    if names(&found) == ["0", "1"] { Ok(!through) } else { Err(format!("{:?}", names(&found))) }
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

/// A store that keeps this much, with enough runs for a wide one, and all of them clean.
pub(crate) fn trimming(keep: Keep) -> Store {
    let config = PagesConfig { keep, ..CONFIG_OF_PAGES };
    let store = Store::open_with(&new_disk(8), Model::default(), &config).expect("it opens");
    let store = filled(store, &mut Random::new(8), RUNS, 40);
    clean_now(&store).expect("the disk is sound");
    store
}

fn archive_bytes(store: &Store) -> u64 {
    let runs = named(&store.files, "archive", "run-");
    runs.iter().map(|run| store.files.metadata(run).expect("it is there").size_bytes).sum()
}

/// The oldest moment that the store can be made again as it was at.
fn oldest(store: &Store) -> Rsn {
    let to = directories(&new_log(1));
    let found = restore(&directories(&store.files), At::Rsn(Rsn::NONE), tag(), &to, &mut |_| {});
    match found {
        Err(RestoreError::Outside { oldest, .. }) => oldest.rsn,
        other => panic!("nothing is so old: {other:?}"),
    }
}

#[test]
fn what_is_not_kept_is_left_out_and_pages_do_not_need_it() {
    let all = trimming(Keep::All);
    merge(&all).expect("the disk is sound");
    assert_eq!(oldest(&all), Rsn::FIRST);
    let store = trimming(Keep::Repair);
    merge(&store).expect("the disk is sound");
    assert!(archive_bytes(&store) * 2 < archive_bytes(&all), "little was left out");
    assert!(oldest(&store) > Rsn::FIRST);
    for store in [all, store] {
        store.pages.restore().expect("the disk is sound");
        check_found(&store).expect("every page can be built");
        clean(&store).expect("the disk is sound");
        check_device(&store).expect("every page is back");
        assert_eq!(store.pages.lost(), 0);
        let again = after_power_cut(&store);
        check_found(&again).expect("every page can be built");
    }
}

#[test]
fn what_is_within_the_window_is_kept() {
    let store = trimming(Keep::WindowMs(11_500));
    store.clock.advance_ns(1_000_000_000);
    merge(&store).expect("the disk is sound");
    assert!(oldest(&store) == Rsn::FIRST, "all of it was made since then");
    let store = trimming(Keep::WindowMs(11_500));
    store.clock.advance_ns(6_000_000_000);
    merge(&store).expect("the disk is sound");
    assert!(oldest(&store) > Rsn::FIRST);
}

#[test]
fn what_a_backup_needs_stays() {
    let store = trimming(Keep::Repair);
    let backup = FakeFiles::new(1);
    backup.make_dir(Path::new("archive"), 0o700).expect("the disk is sound");
    store.pages.back_up(&directories(&backup), &mut |_| {}).expect("the disk is sound");
    let store = filled(store, &mut Random::new(9), RUNS, 40);
    clean_now(&store).expect("the disk is sound");
    merge(&store).expect("the disk is sound");
    store.pages.forward(&directories(&backup), &mut |_| {}).expect("nothing is missing");
    let to = new_log(1);
    let made = restore(&directories(&backup), At::End, tag(), &directories(&to), &mut |_| {});
    let moment = made.expect("it is a backup");
    let found = Store::open(&to, store.model.before(moment.rsn)).expect("it opens");
    check_found(&found).expect("every page is there");
}
