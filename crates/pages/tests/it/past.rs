//! A store is made again as it was at any moment, from its archive or from a backup.

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_io::Files;
use holdfast_io::fake::{FakeFiles, Mood, Random, is_power_cut};
use holdfast_pages::{
    Archive, At, BackupError, Directories, FramePlace, Manifest, Moment, PAGE_BYTES, PageNumber,
    RestoreError, Rsn, Slot, What, parse, restore,
};

use crate::cleaning::{archive, check_device, check_found, clean, clean_now, cleaned, overwrite};
use crate::support::{replay, tag};
use crate::toy::{PAGES, Store, directories, new_log};

/// Where a backup goes: another machine's disk.
pub(crate) fn elsewhere(seed: u64) -> FakeFiles {
    let files = FakeFiles::new(seed);
    files.make_dir(Path::new("archive"), 0o700).expect("the disk is sound");
    files
}

pub(crate) fn back_up(store: &Store, to: &FakeFiles) -> Result<Manifest, BackupError> {
    store.pages.back_up(&directories(to), &mut |_| {})
}

pub(crate) fn bring_forward(store: &Store, backup: &FakeFiles) -> Result<Manifest, BackupError> {
    store.pages.forward(&directories(backup), &mut |_| {})
}

pub(crate) fn restored(from: &Directories, at: At, to: &FakeFiles) -> Result<Moment, RestoreError> {
    restore(from, at, tag(), &directories(to), &mut |_| {})
}

/// A store made as it was, opened.
pub(crate) fn open(from: &FakeFiles, at: At, store: &Store) -> Result<(Store, Moment), String> {
    let to = new_log(77);
    let moment = restored(&directories(from), at, &to).map_err(|error| error.to_string())?;
    let opened = Store::open(&to, store.model.before(moment.rsn))?;
    if opened.found.next == moment.rsn { Ok((opened, moment)) } else { Err("a gap".into()) }
}

/// It has everything that it had then, and so has its page file in the end.
pub(crate) fn check(store: &Store) -> Result<(), String> {
    check_found(store)?;
    clean(store).map_err(|error| error.to_string())?;
    check_found(store)?;
    check_device(store)
}

/// A short history in frames of some records, some of it cleaned, all of it archived.
fn history(seed: u64) -> (Store, Vec<FramePlace>) {
    let (mut store, mut random) = (Store::new(seed), Random::new(seed));
    for number in (1..=PAGES).map(PageNumber) {
        store.put(number, &mut random).expect("it fits");
    }
    for frame in 0..30 {
        for _ in 0..4 {
            store.put(PageNumber(1 + random.below(PAGES)), &mut random).expect("it fits");
        }
        store.end(Slot(frame % 3)).expect("it fits");
        store.clock.advance_ns(2_000_000);
        store.pages.stream().flush().expect("there is room");
        if frame % 8 == 7 {
            store.pages.archive_all().expect("the disk is sound");
            clean(&store).expect("the disk is sound");
        }
    }
    store.pages.archive_all().expect("the disk is sound");
    let archive = store.files.below(Path::new("archive")).expect("it is there");
    let archive = Archive::look(&archive, tag()).expect("nothing is missing");
    let frames = archive.runs().iter().flat_map(|run| run.frames().expect("it is whole"));
    let frames = frames.collect();
    (store, frames)
}

#[test]
fn every_moment_can_be_restored_by_its_place_position_or_time() {
    let (store, frames) = history(1);
    assert!(frames.len() > 25);
    for (which, frame) in frames.iter().enumerate() {
        let time = frame.utc_ns;
        let at = [At::Rsn(frame.end), At::Lsn(frame.lsn_end), At::Time(time)][which % 3];
        let wanted = match at {
            At::Time(_) => frames.iter().rfind(|frame| frame.utc_ns <= time).expect("this one"),
            _ => frame,
        };
        let (found, moment) = open(&store.files, at, &store).expect("it is in the archive");
        assert_eq!(moment.rsn, wanted.end, "{at:?}");
        check_found(&found).expect("it is as it was");
        assert!(found.pages.is_restoring());
    }
}

/// What transactions have to undo whose records stand before `end`, taken one by one.
fn losers(store: &Store, end: Rsn) -> BTreeMap<Slot, Vec<Vec<u8>>> {
    let archive = store.files.below(Path::new("archive")).expect("it is there");
    let archive = Archive::look(&archive, tag()).expect("nothing is missing");
    let mut records = BTreeMap::new();
    for run in archive.runs() {
        let mut scan = run.scan(PageNumber(1)).expect("it is whole");
        while let Some(entry) = scan.current() {
            records.insert(entry.rsn, entry.bytes.to_vec());
            scan.advance().expect("it is whole");
        }
    }
    let mut losers = BTreeMap::<Slot, Vec<Vec<u8>>>::new();
    for (rsn, bytes) in records.range(..end) {
        match parse(*rsn, bytes).expect("it is a record").what {
            What::Update { slot, body, .. } => losers.entry(slot).or_default().push(body.to_vec()),
            What::Commit(slot) => drop(losers.remove(&slot)),
            _ => {}
        }
    }
    losers
}

#[test]
fn what_had_not_ended_then_is_to_be_undone() {
    let (store, frames) = history(2);
    let mut undone = 0;
    for frame in &frames {
        let (found, _) = open(&store.files, At::Rsn(frame.end), &store).expect("it is there");
        let found: BTreeMap<_, _> = found.found.losers.into_iter().collect();
        assert_eq!(found, losers(&store, frame.end));
        undone += found.len();
    }
    assert!(undone > 10, "nothing was to be undone, so nothing was tested");
}

#[test]
fn a_moment_between_two_is_the_one_before_and_others_are_refused() {
    let (store, frames) = history(3);
    let (frame, from) = (frames[20], directories(&store.files));
    let at = |at| restored(&from, at, &new_log(1));
    let inside = at(At::Rsn(Rsn(frame.end.get() - 1))).expect("it is in the archive");
    assert_eq!(inside.rsn, frame.first);
    let newest = frames[frames.len() - 1];
    for outside in [
        At::Rsn(newest.end.advance(1)),
        At::Rsn(Rsn::NONE),
        At::Time(frames[0].utc_ns - 2_000_000),
        At::Time(newest.utc_ns + 2_000_000),
    ] {
        let Err(RestoreError::Outside { oldest, newest: last }) = at(outside) else {
            panic!("{outside:?} is outside");
        };
        assert_eq!((oldest.rsn, last.rsn), (Rsn::FIRST, newest.end));
    }
}

#[test]
fn a_restored_store_goes_on() {
    let (store, frames) = history(4);
    let (mut found, _) = open(&store.files, At::Rsn(frames[25].end), &store).expect("it is there");
    let mut random = Random::new(4);
    archive(&mut found, &mut random, 5);
    check(&found).expect("everything is there");
    archive(&mut found, &mut random, 5);
    clean(&found).expect("the disk is sound");
    let model = found.model.clone();
    let again = Store::open(&found.files.after_power_cut_in(Mood::LoseAll, 1), model);
    check_found(&again.expect("it opens")).expect("everything is there");
}

#[test]
fn a_place_with_a_store_is_not_restored_to() {
    let (store, _) = history(5);
    let found = restored(&directories(&store.files), At::End, &store.files);
    assert!(matches!(found, Err(RestoreError::NotEmpty)), "{found:?}");
    let empty = restored(&directories(&elsewhere(1)), At::End, &new_log(1));
    assert!(matches!(empty, Err(RestoreError::Nothing)), "{empty:?}");
}

/// A store whose page file is some way behind its stream, and a backup of it.
pub(crate) fn backed_up(seed: u64) -> (Store, Random, FakeFiles) {
    let (mut store, mut random) = cleaned(seed);
    archive(&mut store, &mut random, 10);
    clean_now(&store).expect("the disk is sound");
    archive(&mut store, &mut random, 3);
    for number in (1..=PAGES).map(PageNumber).filter(|number| number.get() % 2 == 0) {
        store.put(number, &mut random).expect("it fits");
    }
    let to = elsewhere(seed);
    let manifest = back_up(&store, &to).expect("the disk is sound");
    assert!(Rsn::FIRST < manifest.begin && manifest.begin < manifest.end);
    (store, random, to)
}

#[test]
fn a_backup_has_all_that_was_put_before_it_although_its_records_do_not() {
    let (store, _, to) = backed_up(6);
    let (found, moment) = open(&to, At::End, &store).expect("it is a backup");
    assert_eq!(moment.rsn, store.pages.archived());
    check(&found).expect("everything is there");
    let archive = to.below(Path::new("archive")).expect("it is there");
    let archive = Archive::look(&archive, tag()).expect("nothing is missing");
    assert!(archive.begin() > Some(Rsn::FIRST), "it is not the whole archive");
}

#[test]
fn a_bad_page_is_not_backed_up() {
    let (mut store, mut random) = cleaned(7);
    archive(&mut store, &mut random, 10);
    clean_now(&store).expect("the disk is sound");
    archive(&mut store, &mut random, 3);
    overwrite(&store, PageNumber(3), &[1; PAGE_BYTES]);
    overwrite(&store, PageNumber(4), &[0; PAGE_BYTES]);
    let to = elsewhere(7);
    let manifest = back_up(&store, &to).expect("the archive has them");
    assert!(manifest.newest > manifest.begin, "what was rebuilt is newer");
    check(&open(&to, At::End, &store).expect("it is a backup").0).expect("everything is there");
    let early = restored(&directories(&to), At::Rsn(manifest.begin), &new_log(1));
    assert!(matches!(early, Err(RestoreError::Outside { .. })), "{early:?}");
}

#[test]
fn a_backup_that_is_brought_forward_is_as_a_fresh_one() {
    let (mut store, mut random, old) = backed_up(8);
    archive(&mut store, &mut random, 7);
    clean_now(&store).expect("the disk is sound");
    let forward = bring_forward(&store, &old).expect("the disk is sound");
    clean_now(&store).expect("the disk is sound");
    let fresh = elsewhere(9);
    let manifest = back_up(&store, &fresh).expect("the disk is sound");
    assert!(manifest.begin >= forward.begin && forward.begin == forward.end);
    let bytes = |files: &FakeFiles| {
        let file = files.open(Path::new("pages"), Default::default()).expect("it is there");
        let mut bytes = vec![0; (PAGES as usize + 1) * PAGE_BYTES];
        file.read_full_at(&mut bytes, 0).expect("it is there");
        bytes
    };
    assert!(bytes(&old) == bytes(&fresh), "the pages are the same");
    check(&open(&old, At::End, &store).expect("it is a backup").0).expect("everything is there");
    archive(&mut store, &mut random, 2);
    bring_forward(&store, &old).expect("it is brought forward again");
    check(&open(&old, At::End, &store).expect("it is a backup").0).expect("everything is there");
}

#[test]
fn what_is_no_backup_is_told() {
    let (store, _, to) = backed_up(10);
    let again = back_up(&store, &to);
    assert!(matches!(again, Err(BackupError::NotEmpty)), "{again:?}");
    let none = bring_forward(&store, &elsewhere(1));
    assert!(matches!(none, Err(BackupError::NoBackup)), "{none:?}");
    to.flip_bit(Path::new("manifest"), 8 * 20).expect("it is there");
    let damaged = open(&to, At::End, &store).err().expect("it is damaged");
    assert!(damaged.contains("manifest"), "{damaged}");
}

#[test]
fn a_restore_that_is_cut_short_is_no_store_and_can_be_made_again() {
    let (store, _, from) = backed_up(11);
    let mut operation = 1;
    loop {
        let to = new_log(operation);
        to.cut_power_at(to.operations() + operation);
        let found = restored(&directories(&from), At::End, &to);
        let disk = to.after_power_cut(operation);
        let again = || replay("a_restore_that_is_cut_short", 11);
        if Store::open(&disk, store.model.clone()).is_err() {
            let made = restored(&directories(&from), At::End, &disk);
            made.unwrap_or_else(|error| panic!("{operation}: {error}\n{}", again()));
        }
        let opened = Store::open(&disk, store.model.before(store.pages.archived()));
        let checked = opened.and_then(|store| check(&store));
        checked.unwrap_or_else(|error| panic!("{operation}: {error}\n{}", again()));
        match found {
            Ok(_) => break,
            Err(RestoreError::Io(error)) if is_power_cut(&error) => {}
            Err(error) => assert!(error.to_string().contains("power"), "{operation}: {error}"),
        }
        operation += 1;
    }
    assert!(operation > 10, "a restore has more operations than {operation}");
}

#[test]
fn a_backup_is_one_at_every_moment_of_being_brought_forward() {
    for mood in [Mood::LoseAll, Mood::KeepAll] {
        let (mut store, mut random, backup) = backed_up(12);
        let old = backup.after_power_cut_in(Mood::KeepAll, 1);
        let (old_end, mut operation) = (store.pages.archived(), 1);
        archive(&mut store, &mut random, 5);
        loop {
            let files = old.after_power_cut_in(Mood::KeepAll, 1);
            files.cut_power_at(files.operations() + operation);
            let is_through = bring_forward(&store, &files).is_ok();
            let cut = files.after_power_cut_in(mood, operation);
            let again = || replay("a_backup_is_one_at_every_moment", 12);
            let opened = open(&cut, At::End, &store);
            let checked = opened.and_then(|(store, moment)| {
                assert!(moment.rsn >= old_end);
                check(&store)
            });
            checked.unwrap_or_else(|error| panic!("{operation}: {error}\n{}", again()));
            if is_through {
                break;
            }
            operation += 1;
        }
        assert!(operation > 10, "it takes more operations than {operation}");
    }
}
