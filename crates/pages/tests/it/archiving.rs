//! What is archived is not needed in the log, and whoever misses one of the two is helped by the
//! other.

use std::path::{Path, PathBuf};

use holdfast_io::Files;
use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation, Random};
use holdfast_pages::canary::{Invariant, switch_off};
use holdfast_pages::{ArchiveError, FetchError, FlushError, Page, PageNumber, Rsn, RunFault};

use crate::lives::{live, lives};
use crate::support::RING_BYTES;
use crate::toy::{PAGES, Store};

/// The files of this directory whose names begin so, in order.
pub(crate) fn named(files: &FakeFiles, dir: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = files.read_dir(Path::new(dir)).expect("it is there");
    let names = entries.into_iter().map(|entry| String::from_utf8(entry.name).expect("a name"));
    let mut paths: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    paths.sort_unstable();
    paths.into_iter().map(|name| Path::new(dir).join(name)).collect()
}

/// Turns the last bit of a file over.
fn damage(files: &FakeFiles, path: &Path) {
    let bytes = files.metadata(path).expect("it is there").size_bytes;
    files.flip_bit(path, 8 * bytes - 1).expect("it is there");
}

/// A store that has lived for a while, and closed its last window.
fn lived(seed: u64) -> Store {
    let (mut store, mut random) = (Store::new(seed), Random::new(seed));
    live(&mut store, &mut random, 1500).expect("the disk is sound");
    store.pages.archive_all().expect("the disk is sound");
    store
}

/// The store that is found if the power fails now.
fn again(store: Store) -> Result<Store, String> {
    let (model, disk) = (store.model.clone(), store.files.after_power_cut_in(Mood::LoseAll, 1));
    drop(store);
    Store::open(&disk, model)
}

#[test]
fn what_is_archived_is_given_back_and_a_restart_reads_only_what_is_not() {
    let store = lived(1);
    let (archived, next) = (store.pages.archived(), store.pages.stream().next());
    assert_eq!(archived, store.pages.stream().durable());
    assert!(next.since(archived) < 100, "only what archiving itself says is not archived");
    assert!(named(&store.files, "archive", "run-").len() > 4);
    let store = again(store).expect("everything is there");
    assert!(store.found.read_bytes < 4 * (32 << 10), "{} bytes", store.found.read_bytes);
    assert!(store.found.base > Rsn::FIRST && !store.found.fell_back);
    store.check().expect("nothing is missing");
}

#[test]
fn from_either_base_a_restart_knows_the_same() {
    for seed in 1..=4 {
        let store = lived(seed);
        for name in ["base-0", "base-1"] {
            let disk = store.files.after_power_cut_in(Mood::LoseAll, 1);
            damage(&disk, Path::new(name));
            let again = Store::open(&disk, store.model.clone()).expect("the other serves");
            assert!(again.found.fell_back, "{name}");
            again.check().expect("nothing is missing");
        }
    }
}

#[test]
fn a_damaged_run_is_written_again_while_the_log_has_its_records() {
    let mut store = lived(2);
    let mut random = Random::new(9);
    for _ in 0..20 {
        store.put(PageNumber(1 + random.below(PAGES)), &mut random).expect("it fits");
    }
    store.pages.archive_all().expect("the disk is sound");
    let archived = store.pages.archived();
    let newest = named(&store.files, "archive", "run-0-").pop().expect("there are runs");
    damage(&store.files, &newest);
    let store = again(store).expect("the log has what the run had");
    assert!(store.pages.archived() < archived);
    store.check().expect("nothing is missing");
    store.pages.archive_all().expect("the disk is sound");
    let store = again(store).expect("everything is there");
    store.check().expect("nothing is missing");
}

#[test]
fn a_run_that_the_log_has_no_more_costs_the_pages_that_need_it() {
    for lost in [0..1, 1..2, 1..3] {
        let (mut store, mut random) = (Store::new(3), Random::new(3));
        for _ in 0..3 {
            (0..30).for_each(|_| {
                store.put(PageNumber(1 + random.below(PAGES)), &mut random).expect("it fits");
            });
            store.pages.archive_all().expect("the disk is sound");
            assert!(store.pages.write_base().expect("the disk is sound"));
        }
        let (model, files) = (store.model.clone(), store.files.clone());
        let runs = named(&files, "archive", "run-0-");
        runs[lost].iter().for_each(|run| damage(&files, run));
        drop(store);
        let store = Store::open(&files, model).expect("other pages are there");
        let numbers = (1..=PAGES).map(PageNumber);
        let found = numbers.map(|number| store.pages.load(number, &mut Page::zeroed()));
        let refused: Vec<_> = found.filter_map(Result::err).collect();
        let is_named = |error: &FetchError| {
            let FetchError::Archive { fault: RunFault::Lost { begin, end }, .. } = error else {
                return matches!(error, FetchError::NoSuchPage(_));
            };
            begin < end
        };
        assert!(!refused.is_empty() && refused.iter().all(is_named), "{refused:?}");
    }
}

#[test]
fn who_finds_the_log_full_archives_it() {
    let (mut store, mut random) = (Store::new(4), Random::new(4));
    while store.log.marks().tail.get() < 6 * RING_BYTES {
        store.put(PageNumber(1 + random.below(PAGES)), &mut random).expect("it fits");
        if random.below(8) == 0 {
            store.pages.stream().flush().expect("room is made");
        }
    }
    store.check().expect("nothing is missing");
    let store = again(store).expect("everything is there");
    store.check().expect("nothing is missing");
}

#[test]
fn a_full_disk_stops_who_needs_room_until_there_is_some() {
    let (mut store, mut random) = (Store::new(5), Random::new(5));
    let space = store.files.space().expect("it says how much");
    let used_bytes = space.total_bytes - space.free_bytes;
    store.files.set_capacity_bytes(Some(used_bytes + (96 << 10)));
    let refused = loop {
        store.put(PageNumber(1 + random.below(PAGES)), &mut random).expect("it fits");
        if let Err(error) = store.pages.stream().flush() {
            break error;
        }
    };
    assert!(matches!(refused, FlushError::Full(_)), "{refused}");
    store.files.set_capacity_bytes(None);
    assert!(store.pages.archive().expect("there is room again"), "somebody waits for it");
    store.pages.stream().flush().expect("there is room again");
    assert!(!store.pages.archive().expect("there is room"), "it waits for a window again");
    store.check().expect("nothing is missing");
    store.pages.archive_all().expect("there is room again");
    again(store).expect("everything is there").check().expect("nothing is missing");
}

#[test]
fn a_run_that_is_not_written_is_written_the_next_time() {
    for operation in [Operation::Write, Operation::SyncData, Operation::Rename] {
        let (mut store, mut random) = (Store::new(6), Random::new(6));
        for _ in 0..50 {
            store.put(PageNumber(1 + random.below(PAGES)), &mut random).expect("it fits");
        }
        store.pages.stream().sync(store.pages.stream().next()).expect("the disk is sound");
        store.files.fail(Fault { operation, skip: 0, effect: Effect::Errno(EIO) });
        let refused = store.pages.archive_all().expect_err("the disk fails");
        assert!(matches!(refused, ArchiveError::Run(_)), "{refused}");
        assert_eq!((store.files.faults_fired(), store.pages.archived()), (1, Rsn::FIRST));
        assert!(store.pages.archive_all().expect("the disk is sound again"));
        store.check().expect("nothing is missing");
        again(store).expect("everything is there").check().expect("nothing is missing");
    }
}

/// Whether one of so many seeds tells that an invariant does not hold.
fn is_noticed(invariant: Invariant, of: impl Fn(u64) -> Result<(), String>) -> bool {
    let _off = switch_off(invariant);
    let of = std::panic::AssertUnwindSafe(of);
    (1..=20).any(|seed| std::panic::catch_unwind(|| of(seed)).is_ok_and(|of| of.is_err()))
}

/// Whichever base is damaged, the other serves.
fn either_serves(seed: u64) -> Result<(), String> {
    let store = lived(seed);
    for name in ["base-0", "base-1"] {
        let disk = store.files.after_power_cut_in(Mood::LoseAll, 1);
        damage(&disk, Path::new(name));
        Store::open(&disk, store.model.clone())?.check()?;
    }
    Ok(())
}

#[test]
fn windows_that_do_not_tile_are_noticed() {
    assert!(is_noticed(Invariant::WindowsTile, lives));
}

#[test]
fn a_log_that_is_given_back_too_early_is_noticed() {
    assert!(is_noticed(Invariant::ReleasedByTheLeast, either_serves));
}

#[test]
fn bases_that_are_not_synced_are_noticed() {
    assert!(is_noticed(Invariant::BasesAreChecked, lives));
}

#[test]
fn a_page_that_never_was_is_not_there() {
    let store = lived(7);
    let mut page = holdfast_pages::Page::zeroed();
    for number in [0, PAGES + 1, 1 << 31, u64::MAX] {
        let refused = store.pages.load(PageNumber(number), &mut page);
        let refused = refused.expect_err("nobody has put it");
        assert!(matches!(refused, holdfast_pages::FetchError::NoSuchPage(_)), "{refused}");
    }
}
