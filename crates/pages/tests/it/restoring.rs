//! A page file that is lost comes back from the archive, and nobody waits for all of it.

use std::path::Path;

use holdfast_io::Files;
use holdfast_io::fake::{EIO, Effect, Fault, Mood, Operation};
use holdfast_pages::{FaultKind, PAGE_BYTES, Page, PageNumber};

use crate::cleaning::{
    after_power_cut, archive, check_device, check_found, clean, cleaned, numbers, overwrite,
};
use crate::lives::live;
use crate::support::{replay, seeds};
use crate::toy::Store;

fn lose_pages(store: &Store) {
    store.files.remove_file(Path::new("pages")).expect("it is there");
    store.files.sync_dir(Path::new("")).expect("the disk is sound");
}

fn faults(store: &Store) -> u64 {
    FaultKind::ALL.iter().map(|kind| store.pages.repairs().count(*kind)).sum()
}

fn is_marked(store: &Store) -> bool {
    store.files.metadata(Path::new("restoring")).is_ok()
}

#[test]
fn a_missing_page_file_is_made_anew_and_pages_are_loaded_before_they_are_back() {
    let (store, _) = cleaned(1);
    store.pages.stream().sync(store.pages.stream().next()).expect("the disk is sound");
    lose_pages(&store);
    let store = after_power_cut(&store);
    assert!(store.pages.is_restoring() && is_marked(&store));
    check_found(&store).expect("the archive has them");
    check_device(&store).expect_err("the page file has not");
    clean(&store).expect("the disk is sound");
    assert!(!store.pages.is_restoring() && !is_marked(&store));
    check_device(&store).expect("they are back");
    assert_eq!((faults(&store), store.pages.rebuilt()), (0, 0), "no page had a fault");
    check_device(&after_power_cut(&store)).expect("they were synced");
}

#[test]
fn a_page_file_is_replaced_while_the_store_is_open() {
    let (mut store, mut random) = cleaned(2);
    archive(&mut store, &mut random, 20);
    assert!(store.pages.clean().expect("the disk is sound"), "a pass has begun");
    lose_pages(&store);
    store.pages.restore().expect("the disk is sound");
    for number in numbers() {
        store.put(number, &mut random).expect("it fits");
    }
    store.pages.stream().flush().expect("there is room");
    store.check().expect("records lead to them");
    assert!(store.pages.clean().expect("the disk is sound"), "a segment is back");
    store.check().expect("records lead to them");
    clean(&store).expect("the disk is sound");
    archive(&mut store, &mut random, 20);
    clean(&store).expect("the disk is sound");
    check_device(&store).expect("they are back");
    assert_eq!(faults(&store), 0, "no page had a fault");
}

#[test]
fn a_page_that_goes_bad_once_it_is_back_is_a_fault_again() {
    let (store, _) = cleaned(3);
    lose_pages(&store);
    store.pages.restore().expect("the disk is sound");
    assert!(store.pages.clean().expect("the disk is sound"), "the first segment is back");
    overwrite(&store, PageNumber(2), &[0; PAGE_BYTES]);
    let load = |number| store.pages.load(PageNumber(number), &mut Page::zeroed());
    let there = load(2).expect("the archive has it");
    assert_eq!(there.repaired, Some(FaultKind::Zeroed));
    let missing = load(9).expect("the archive has it");
    assert!(missing.replayed && missing.repaired.is_none());
}

#[test]
fn a_device_that_fails_while_pages_come_back_is_told_and_it_begins_anew() {
    let (store, _) = cleaned(4);
    lose_pages(&store);
    store.pages.restore().expect("the disk is sound");
    for (operation, effect) in
        [(Operation::Write, Effect::Errno(EIO)), (Operation::SyncData, Effect::DropsDirty)]
    {
        store.files.fail(Fault { operation, skip: 0, effect });
        clean(&store).expect_err("the device failed");
        assert!(store.pages.is_restoring() && is_marked(&store));
    }
    clean(&store).expect("the disk is sound");
    assert!(!store.pages.is_restoring());
    check_device(&after_power_cut(&store)).expect("they are back, and were synced");
}

#[test]
fn what_is_left_of_the_old_page_file_goes_when_all_pages_are_back() {
    let (store, _) = cleaned(6);
    let is_there = || store.files.metadata(Path::new("pages.lost")).is_ok();
    store.pages.restore().expect("the disk is sound");
    store.pages.restore().expect("the disk is sound");
    assert!(is_there());
    clean(&store).expect("the disk is sound");
    assert!(!is_there());
    check_device(&store).expect("they are back");
}

/// A restore that is cut at this operation, and again at the same one. False if it was through.
fn cut_at(operation: u64, mood: Mood) -> Result<bool, String> {
    let (mut store, mut random) = cleaned(5);
    archive(&mut store, &mut random, 5);
    store.pages.stream().sync(store.pages.stream().next()).map_err(|error| error.to_string())?;
    store.files.cut_power_at(store.files.operations() + operation);
    let mut was_cut = store.pages.restore().is_err() || clean(&store).is_err();
    for round in 0..2 {
        let disk = store.files.after_power_cut_in(mood, operation + round);
        store = Store::open(&disk, store.model.clone())?;
        check_found(&store)?;
        store.files.cut_power_at(store.files.operations() + operation);
        was_cut |= clean(&store).is_err();
    }
    let disk = store.files.after_power_cut_in(mood, operation);
    let found = Store::open(&disk, store.model.clone())?;
    clean(&found).map_err(|error| error.to_string())?;
    check_found(&found)?;
    if found.pages.is_restoring() { Err("pages are missing".into()) } else { Ok(was_cut) }
}

#[test]
fn a_power_cut_at_any_operation_of_a_restore_loses_nothing() {
    for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter] {
        let mut operation = 1;
        let again = || replay("a_power_cut_at_any_operation_of_a_restore", 5);
        while cut_at(operation, mood)
            .unwrap_or_else(|error| panic!("operation {operation}, {mood:?}: {error}\n{}", again()))
        {
            operation += 1;
        }
        assert!(operation > 8, "a restore has more operations than {operation}");
    }
}

#[test]
fn lives_go_on_while_pages_come_back() {
    for seed in seeds(10) {
        let (mut store, mut random) = cleaned(seed);
        store.pages.restore().expect("the disk is sound");
        let lived = live(&mut store, &mut random, 400);
        let checked = lived.and_then(|_| store.check());
        checked.unwrap_or_else(|error| panic!("{error}\n{}", replay("lives_go_on_while", seed)));
    }
}
