//! The page file becomes what the archive says, whatever it was and whatever fails meanwhile.

use std::path::Path;

use holdfast_io::fake::{ENOSPC, Effect, FakeFiles, Fault, Mood, Operation, Random, Sectors};
use holdfast_io::{Files, OpenHow};
use holdfast_pages::canary::{Invariant, switch_off};
use holdfast_pages::{
    CleanError, PAGE_BYTES, Page, PageFile, PageNumber, Rsn, VERSIONS_PAGES, Versions,
    WritePagesError,
};

use crate::support::{replay, tag};
use crate::toy::{CONFIG_OF_PAGES, PAGES, Store};

pub(crate) fn numbers() -> impl Iterator<Item = PageNumber> {
    (1..=PAGES).map(PageNumber)
}

fn page_file(files: &FakeFiles) -> PageFile {
    let segment_pages = CONFIG_OF_PAGES.segment_pages;
    PageFile::open(files, Path::new("pages"), tag(), segment_pages).expect("it is there")
}

/// What the device has of each page is what all of its records make of it.
pub(crate) fn check_device(store: &Store) -> Result<(), String> {
    let file = page_file(&store.files);
    numbers().try_for_each(|number| {
        let (mut found, wanted) = (Page::zeroed(), store.model.page(number));
        file.read(number, &mut found).map_err(|error| format!("page {number}: {error}"))?;
        let is_same = found.same_bytes(&wanted);
        if is_same { Ok(()) } else { Err(format!("{found:?} is not {wanted:?}")) }
    })
}

/// Every page is loaded with all of its records, although nobody says which is the last.
pub(crate) fn check_found(store: &Store) -> Result<(), String> {
    numbers().try_for_each(|number| {
        let (mut found, wanted) = (Page::zeroed(), store.model.page(number));
        let loaded = store.pages.load(number, &mut found);
        loaded.map_err(|error| format!("page {number}: {error}"))?;
        let is_same = found.same_bytes(&wanted);
        if is_same { Ok(()) } else { Err(format!("{found:?} is not {wanted:?}")) }
    })
}

/// Puts so many records of each page, and archives them.
pub(crate) fn archive(store: &mut Store, random: &mut Random, count: u64) {
    for number in (0..count).flat_map(|_| numbers()) {
        store.put(number, random).expect("it fits");
    }
    store.pages.archive_all().expect("the disk is sound");
}

pub(crate) fn clean(store: &Store) -> Result<(), CleanError> {
    while store.pages.clean()? {}
    Ok(())
}

/// Also cleans what is too little to begin at once.
pub(crate) fn clean_now(store: &Store) -> Result<(), CleanError> {
    clean(store)?;
    store.clock.advance_ns(10_000_000_000);
    clean(store)
}

/// A store with all pages on the device, and what to draw from.
pub(crate) fn cleaned(seed: u64) -> (Store, Random) {
    let (mut store, mut random) = (Store::new(seed), Random::new(seed));
    archive(&mut store, &mut random, 20);
    clean(&store).expect("the disk is sound");
    (store, random)
}

/// The store as it is found after a power cut in which everything is lost that was not synced.
pub(crate) fn after_power_cut(store: &Store) -> Store {
    let disk = store.files.after_power_cut_in(Mood::LoseAll, 1);
    Store::open(&disk, store.model.clone()).expect("it opens")
}

/// Puts bytes onto the device where a page is.
pub(crate) fn overwrite(store: &Store, number: PageNumber, bytes: &[u8]) {
    let how = OpenHow { write: true, ..OpenHow::default() };
    let file = store.files.open(Path::new("pages"), how).expect("it is there");
    let at = number.get() * PAGE_BYTES as u64;
    file.write_all_at(bytes, at).and_then(|()| file.sync_data()).expect("the disk is sound");
}

/// The bytes on the device where a page is.
pub(crate) fn bytes_of(store: &Store, number: PageNumber) -> Vec<u8> {
    let file = store.files.open(Path::new("pages"), OpenHow::default()).expect("it is there");
    let mut bytes = vec![0; PAGE_BYTES];
    file.read_full_at(&mut bytes, number.get() * PAGE_BYTES as u64).expect("it is there");
    bytes
}

#[test]
fn what_is_archived_reaches_the_page_file_and_need_not_be_replayed_then() {
    let (store, _) = cleaned(1);
    assert_eq!(store.pages.cleaned(), store.pages.archived());
    check_device(&store).expect("the pages are there");
    store.pages.stream().sync(store.pages.stream().next()).expect("the disk is sound");
    let store = after_power_cut(&store);
    assert_eq!(store.pages.cleaned(), store.pages.archived());
    for number in numbers() {
        let loaded = store.pages.load(number, &mut Page::zeroed()).expect("it is there");
        assert_eq!((loaded.replayed, loaded.repaired), (false, None));
    }
    check_found(&store).expect("the pages are there");
}

#[test]
fn a_little_waits_for_some_seconds() {
    let (mut store, mut random) = (Store::new(2), Random::new(2));
    store.put(PageNumber(1), &mut random).expect("it fits");
    store.pages.archive_all().expect("the disk is sound");
    assert!(!store.pages.clean().expect("there is time"));
    store.clock.advance_ns(9_999_999_999);
    assert!(!store.pages.clean().expect("there is time"));
    store.clock.advance_ns(1);
    clean(&store).expect("the disk is sound");
    assert_eq!(store.pages.cleaned(), store.pages.archived());
    assert!(!store.pages.clean().expect("there is nothing"));
}

#[test]
fn a_bad_page_is_rebuilt_while_cleaning() {
    for which in 0..4 {
        let (mut store, mut random) = cleaned(3);
        let (number, old) = (PageNumber(2), bytes_of(&store, PageNumber(2)));
        archive(&mut store, &mut random, 2);
        clean_now(&store).expect("the disk is sound");
        let mut flipped = bytes_of(&store, number);
        flipped[5000] ^= 1;
        let other = bytes_of(&store, PageNumber(3));
        let bad = [&flipped[..], &[0; PAGE_BYTES], &other, &old][which];
        overwrite(&store, number, bad);
        archive(&mut store, &mut random, 20);
        clean(&store).expect("the disk is sound");
        assert_eq!((store.pages.rebuilt(), store.pages.lost()), (1, 0), "case {which}");
        check_device(&store).expect("it was rebuilt");
    }
}

#[test]
fn a_page_that_was_repaired_for_a_reader_is_written_again() {
    let (store, _) = cleaned(4);
    overwrite(&store, PageNumber(5), &[7; PAGE_BYTES]);
    let loaded = store.pages.load(PageNumber(5), &mut Page::zeroed()).expect("it is rebuilt");
    assert!(loaded.repaired.is_some());
    check_device(&store).expect_err("it is bad on the device");
    clean_now(&store).expect("the disk is sound");
    check_device(&store).expect("it was written again");
    check_found(&after_power_cut(&store)).expect("it was synced");
}

/// Cleans until the last sync but so many of the pass fails, goes on, and cuts the power.
fn fail_a_sync(skip: u64) -> Result<Store, String> {
    let (mut store, mut random) = cleaned(5);
    archive(&mut store, &mut random, 20);
    store.files.fail(Fault { operation: Operation::SyncData, skip, effect: Effect::DropsDirty });
    let failed = clean(&store);
    assert!(failed.is_err() && store.files.faults_fired() == 1, "{failed:?}");
    store.pages.stream().sync(store.pages.stream().next()).map_err(|error| error.to_string())?;
    check_found(&after_power_cut(&store))?;
    clean(&store).map_err(|error| error.to_string())?;
    store.pages.stream().sync(store.pages.stream().next()).map_err(|error| error.to_string())?;
    let store = after_power_cut(&store);
    check_found(&store)?;
    check_device(&store)?;
    Ok(store)
}

#[test]
fn after_a_failed_sync_everything_is_written_again() {
    for skip in [0, 1] {
        let store = fail_a_sync(skip).expect("nothing is lost");
        assert_eq!(store.pages.cleaned(), store.pages.archived(), "sync {skip}");
    }
}

#[test]
fn pages_that_are_said_to_be_clean_before_they_are_synced_are_noticed() {
    let _off = switch_off(Invariant::SyncedBeforeCleaned);
    let said = fail_a_sync(0).map(drop).expect_err("pages were lost");
    assert!(said.contains("is not"), "{said}");
}

#[test]
fn halves_of_pages_that_are_left_out_because_they_are_in_the_cache_are_noticed() {
    let _off = switch_off(Invariant::LeftOutHalvesAreSynced);
    fail_a_sync(0).map(drop).expect_err("halves were lost");
}

#[test]
fn a_full_disk_is_told_and_cleaning_goes_on_when_there_is_room() {
    let (mut store, mut random) = (Store::new(6), Random::new(6));
    archive(&mut store, &mut random, 20);
    let full = Fault { operation: Operation::Write, skip: 1, effect: Effect::Errno(ENOSPC) };
    store.files.fail(full);
    let found = clean(&store);
    assert!(matches!(found, Err(CleanError::Pages(WritePagesError::Io(_)))), "{found:?}");
    check_found(&store).expect("the archive has them");
    clean(&store).expect("there is room");
    check_device(&store).expect("the pages are there");
}

#[test]
fn a_damaged_block_of_versions_is_written_from_what_the_archive_says() {
    let (store, mut random) = cleaned(7);
    store.files.flip_bit(Path::new("versions"), 8 * 99).expect("it is there");
    store.pages.stream().sync(store.pages.stream().next()).expect("the disk is sound");
    let mut store = after_power_cut(&store);
    check_found(&store).expect("the archive has them");
    let last = PageNumber(PAGES);
    for _ in 0..100 {
        store.put(last, &mut random).expect("it fits");
    }
    store.pages.archive_all().expect("the disk is sound");
    clean(&store).expect("the disk is sound");
    let versions = Versions::open(&store.files, Path::new("versions"), tag()).expect("it is there");
    let mut found = [Rsn::NONE; VERSIONS_PAGES];
    versions.read(0, &mut found).expect("it is whole");
    let wanted: Vec<_> = numbers().map(|number| store.model.page(number).rsn()).collect();
    assert_eq!(found[1..=PAGES as usize], wanted);
    assert!(found[PAGES as usize + 1..].iter().all(|rsn| *rsn == Rsn::NONE));
}

#[test]
fn a_record_that_comes_while_pages_are_cleaned_is_not_forgotten() {
    let (mut store, mut random) = cleaned(8);
    archive(&mut store, &mut random, 20);
    assert!(store.pages.clean().expect("the disk is sound"), "the pass has begun");
    for number in numbers() {
        store.put(number, &mut random).expect("it fits");
    }
    store.pages.stream().flush().expect("there is room");
    store.pages.follow().expect("the stream is sound");
    clean(&store).expect("the disk is sound");
    check_found(&store).expect("the records are there");
}

#[test]
fn a_page_that_cannot_be_rebuilt_hinders_no_other() {
    let (mut store, mut random) = cleaned(9);
    let archive_files = store.files.below(Path::new("archive")).expect("it is there");
    let run = archive_files.read_dir(Path::new("")).expect("it is there").remove(0);
    let run = String::from_utf8(run.name).expect("it is a name");
    archive_files.flip_bit(Path::new(&run), 8 * 50).expect("it is there");
    overwrite(&store, PageNumber(1), &[7; PAGE_BYTES]);
    for _ in 0..60 {
        store.put_update(PageNumber(1), &mut random).expect("it fits");
        store.put_update(PageNumber(2), &mut random).expect("it fits");
    }
    store.pages.archive_all().expect("the disk is sound");
    clean_now(&store).expect("the disk is sound");
    assert_eq!((store.pages.rebuilt(), store.pages.lost()), (0, 1));
    let mut page = Page::zeroed();
    store.pages.load(PageNumber(1), &mut page).expect_err("its records are damaged");
    store.pages.load(PageNumber(2), &mut page).expect("it is on the device");
    assert!(page.same_bytes(&store.model.page(PageNumber(2))));
}

#[test]
fn a_run_before_what_is_clean_is_not_needed_while_images_serve() {
    let (store, _) = cleaned(11);
    store.pages.stream().sync(store.pages.stream().next()).expect("the disk is sound");
    store.pages.write_base().expect("the disk is sound");
    let archive_files = store.files.below(Path::new("archive")).expect("it is there");
    for run in archive_files.read_dir(Path::new("")).expect("it is there") {
        let name = String::from_utf8(run.name).expect("it is a name");
        archive_files.flip_bit(Path::new(&name), 8 * 50).expect("it is there");
    }
    let store = Store::open(&store.files, store.model.clone()).expect("the images serve");
    check_found(&store).expect("the images serve");
}

/// A pass that is cut at this operation. False if it was through before.
fn cut_at(operation: u64, mood: Mood) -> Result<bool, String> {
    let (mut store, mut random) = cleaned(10);
    store.files.set_sectors(if operation.is_multiple_of(3) {
        Sectors::Garbage
    } else {
        Sectors::Whole
    });
    archive(&mut store, &mut random, 15);
    store.files.cut_power_at(store.files.operations() + operation);
    let through =
        clean(&store).is_ok() && store.pages.stream().sync(store.pages.stream().next()).is_ok();
    let disk = store.files.after_power_cut_in(mood, operation);
    let found = Store::open(&disk, store.model.clone())?;
    check_found(&found)?;
    clean_now(&found).map_err(|error| error.to_string())?;
    check_found(&found)?;
    Ok(!through)
}

#[test]
fn a_power_cut_at_any_operation_of_a_pass_loses_nothing() {
    for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter] {
        let mut operation = 1;
        let again = || replay("a_power_cut_at_any_operation_of_a_pass", 10);
        while cut_at(operation, mood)
            .unwrap_or_else(|error| panic!("operation {operation}, {mood:?}: {error}\n{}", again()))
        {
            operation += 1;
        }
        assert!(operation > 8, "a pass has more operations than {operation}");
    }
}
