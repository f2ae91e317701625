//! Whatever the device gives for a page, what is handed over is the page, or it is told that there
//! is none.

use std::path::Path;
use std::rc::Rc;

use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation, Random};
use holdfast_io::{Files, OpenFile, OpenHow};
use holdfast_pages::canary::{Invariant, Point, hook, switch_off};
use holdfast_pages::{FaultKind, FetchError, Fetched, PAGE_BYTES, Page, PageNumber};

use crate::archiving::named;
use crate::lives::live;
use crate::support::{replay, seeds};
use crate::toy::{PAGES, Store};

const SOUND: Fetched = Fetched { replayed: false, repaired: None };

fn file(files: &FakeFiles, name: &str) -> std::sync::Arc<dyn OpenFile> {
    let how = OpenHow { write: true, ..OpenHow::default() };
    files.open(Path::new(name), how).expect("it is there")
}

/// A page as the page file has it.
fn bytes_of(files: &FakeFiles, number: PageNumber) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES];
    let at = number.get() * PAGE_BYTES as u64;
    file(files, "pages").read_full_at(&mut bytes, at).expect("the disk is sound");
    bytes
}

fn put_bytes(files: &FakeFiles, number: PageNumber, bytes: &[u8]) {
    let at = number.get() * PAGE_BYTES as u64;
    file(files, "pages").write_all_at(bytes, at).expect("the disk is sound");
}

/// Archives everything, and cleans until there is nothing left to do.
fn clean(store: &Store) {
    store.pages.archive_all().expect("the disk is sound");
    // What is little waits for a while from when it is noticed.
    store.pages.clean().expect("the disk is sound");
    store.clock.advance_ns(60_000_000_000);
    while store.pages.clean().expect("the disk is sound") {}
}

/// A store whose pages are all in the page file, and what was there before each was changed last.
fn cleaned(seed: u64) -> (Store, Vec<Vec<u8>>) {
    let (mut store, mut random) = (Store::new(seed), Random::new(seed));
    live(&mut store, &mut random, 600).expect("the disk is sound");
    clean(&store);
    let old = (0..=PAGES).map(|number| bytes_of(&store.files, PageNumber(number))).collect();
    for number in (1..=PAGES).map(PageNumber) {
        (0..3).for_each(|_| store.put(number, &mut random).expect("it fits"));
    }
    clean(&store);
    (store, old)
}

/// The page is what its records make of it; how it was had.
fn fetched(store: &Store, number: PageNumber) -> Result<Fetched, String> {
    let mut page = Page::zeroed();
    let fetched = store.pages.load(number, &mut page).map_err(|error| error.to_string())?;
    let wanted = store.model.page(number);
    if page.same_bytes(&wanted) { Ok(fetched) } else { Err(format!("{page:?}, not {wanted:?}")) }
}

/// Damages a page in one of the ways there are.
fn damage(store: &Store, number: PageNumber, kind: FaultKind, old: &[u8]) {
    let mut bytes = bytes_of(&store.files, number);
    match kind {
        FaultKind::Zeroed => bytes.fill(0),
        FaultKind::Damaged => bytes[PAGE_BYTES / 2..].fill(0x5a),
        FaultKind::Misplaced => {
            bytes = bytes_of(&store.files, PageNumber(number.get() % PAGES + 1));
        }
        FaultKind::LostWrite => bytes.copy_from_slice(old),
        _ => {
            let effect = Effect::Errno(EIO);
            store.files.fail(Fault { operation: Operation::Read, skip: 0, effect });
        }
    }
    put_bytes(&store.files, number, &bytes);
}

const KINDS: [FaultKind; 5] = [
    FaultKind::Zeroed,
    FaultKind::Damaged,
    FaultKind::Misplaced,
    FaultKind::LostWrite,
    FaultKind::Unreadable,
];

#[test]
fn a_page_that_is_not_what_was_written_is_rebuilt_and_counted_and_written_again() {
    let (store, old) = cleaned(1);
    for number in (1..=PAGES).map(PageNumber) {
        assert_eq!(fetched(&store, number), Ok(SOUND));
        for kind in KINDS {
            let before = store.pages.repairs().count(kind);
            damage(&store, number, kind, &old[number.get() as usize]);
            let repaired = Fetched { replayed: true, repaired: Some(kind) };
            assert_eq!(fetched(&store, number), Ok(repaired), "page {number}");
            assert_eq!(store.pages.repairs().count(kind), before + 1);
            clean(&store);
            assert_eq!(fetched(&store, number), Ok(SOUND), "page {number} after {kind:?}");
        }
    }
}

#[test]
fn a_restart_also_knows_what_was_written() {
    for kind in KINDS {
        let (store, old) = cleaned(2);
        let disk = store.files.after_power_cut_in(Mood::LoseAll, 2);
        let store = Store::open(&disk, store.model.clone()).expect("everything is there");
        for number in (1..=PAGES).map(PageNumber) {
            // What says which record a page has got to is read with the page before.
            assert_eq!(fetched(&store, number), Ok(SOUND), "page {number}");
            damage(&store, number, kind, &old[number.get() as usize]);
            let repaired = Fetched { replayed: true, repaired: Some(kind) };
            assert_eq!(fetched(&store, number), Ok(repaired), "page {number}");
        }
    }
}

#[test]
fn where_nobody_knows_what_was_written_the_records_tell() {
    let (store, old) = cleaned(3);
    file(&store.files, "versions").write_all_at(&[7; 64], 100).expect("the disk is sound");
    let disk = store.files.after_power_cut_in(Mood::KeepAll, 3);
    let store = Store::open(&disk, store.model.clone()).expect("everything is there");
    for number in (1..=PAGES).map(PageNumber) {
        put_bytes(&store.files, number, &old[number.get() as usize]);
        let fetched = fetched(&store, number).expect("its records are there");
        assert_eq!(fetched, Fetched { replayed: true, repaired: None });
    }
}

#[test]
fn a_page_whose_run_is_damaged_is_told_and_the_others_are_there() {
    let (store, _) = cleaned(4);
    for run in named(&store.files, "archive", "run-") {
        let bytes = store.files.metadata(&run).expect("it is there").size_bytes;
        (100..bytes / 2).step_by(50).for_each(|byte| {
            store.files.flip_bit(&run, 8 * byte).expect("it is there");
        });
    }
    let lost = PageNumber(4);
    put_bytes(&store.files, lost, &[0x5a; PAGE_BYTES]);
    for number in (1..=PAGES).map(PageNumber).filter(|number| *number != lost) {
        assert_eq!(fetched(&store, number), Ok(SOUND));
    }
    let refused = store.pages.load(lost, &mut Page::zeroed()).expect_err("its records are gone");
    assert!(matches!(refused, FetchError::Archive { page, .. } if page == lost), "{refused}");
}

/// A page is cleaned between the two steps by which it is fetched. What was wrong with it?
fn raced(seed: u64) -> Result<Option<FaultKind>, String> {
    let (mut store, _) = cleaned(seed);
    let (mut random, number) = (Random::new(seed), PageNumber(1 + seed % PAGES));
    for _ in 0..1 + random.below(4) {
        store.put(number, &mut random).map_err(|error| error.to_string())?;
    }
    store.pages.archive_all().map_err(|error| error.to_string())?;
    let store = Rc::new(store);
    let hooked = {
        let store = Rc::clone(&store);
        hook(move |point| {
            assert_eq!(point, Point::Fetching);
            clean(&store);
        })
    };
    let fetched = fetched(&store, number);
    drop(hooked);
    Ok(fetched?.repaired)
}

#[test]
fn a_page_that_is_cleaned_while_it_is_fetched_is_not_taken_for_a_lost_write() {
    for seed in seeds(5) {
        let replay = replay("a_page_that_is_cleaned", seed);
        assert_eq!(raced(seed), Ok(None), "{replay}");
    }
}

#[test]
fn a_lookup_after_the_read_is_noticed() {
    let _off = switch_off(Invariant::LookupBeforeRead);
    assert_eq!(raced(1), Ok(Some(FaultKind::LostWrite)));
}

/// What the disk was asked for since, while a page was loaded.
fn reads(store: &Store, number: PageNumber) -> u64 {
    let before = store.files.calls(Operation::Read);
    store.check_page(number).expect("it is the page");
    store.files.calls(Operation::Read) - before
}

#[test]
fn a_page_whose_newest_image_is_not_archived_is_had_without_a_look_at_the_disk() {
    let (mut store, mut random) = (Store::new(31), Random::new(31));
    let (number, other) = (PageNumber(1), PageNumber(2));
    // A page that begins is an image; what follows are changes.
    for of in [number, other] {
        store.put(of, &mut random).expect("it fits");
        store.put_update(of, &mut random).expect("it fits");
    }
    store.pages.stream().flush().expect("the log has room");
    assert_eq!((reads(&store, number), store.pages.elided()), (0, 1));
    // Once it is archived its image has to be looked for.
    store.pages.archive_all().expect("the disk is sound");
    assert!(reads(&store, number) > 0);
    assert_eq!(store.pages.elided(), 1);
    clean(&store);
    store.put_update(number, &mut random).expect("it fits");
    store.pages.stream().flush().expect("the log has room");
    assert!(reads(&store, number) > 0, "what its changes follow is on the disk");
    assert_eq!(store.pages.elided(), 1);
}

#[test]
fn what_the_disk_has_of_a_page_does_not_matter_while_its_image_is_in_memory() {
    let (mut store, mut random) = (Store::new(32), Random::new(32));
    store.put(PageNumber(1), &mut random).expect("it fits");
    store.pages.stream().flush().expect("the log has room");
    store.pages.follow().expect("the log is sound");
    put_bytes(&store.files, PageNumber(1), &[7; PAGE_BYTES]);
    assert_eq!(fetched(&store, PageNumber(1)), Ok(Fetched { replayed: true, repaired: None }));
}
