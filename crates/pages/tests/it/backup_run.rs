//! A store that was made from a backup alone has everything in its archive: each of its pages can
//! be built from there, and so can other stores.

use std::path::Path;

use holdfast_io::fake::{FakeFiles, Mood, Random};
use holdfast_pages::canary::{Invariant, switch_off};
use holdfast_pages::{
    Archive, At, FaultKind, FetchError, Keep, PAGE_BYTES, Page, PageNumber, RestoreError, Rsn,
};

use crate::cleaning::{
    after_power_cut, archive, bytes_of, check_device, check_found, clean, clean_now, numbers,
    overwrite,
};
use crate::merging::{RUNS, filled, merge, names, trimming};
use crate::past::{back_up, backed_up, bring_forward, check, elsewhere, open, restored};
use crate::support::tag;
use crate::toy::{Store, directories, new_log};

fn archive_of(files: &FakeFiles) -> Archive {
    let files = files.below(Path::new("archive")).expect("it is there");
    Archive::look(&files, tag()).expect("nothing is missing")
}

/// A store made from a backup whose records begin late, and that is gone; its page file is back.
fn made(seed: u64, is_forward: bool) -> (Store, Random) {
    let (mut store, mut random, backup) = backed_up(seed);
    if is_forward {
        archive(&mut store, &mut random, 3);
        bring_forward(&store, &backup).expect("the disk is sound");
    }
    assert!(archive_of(&backup).begin() > Some(Rsn::FIRST), "it is not the whole archive");
    let (made, _) = open(&backup, At::End, &store).expect("it is a backup");
    clean(&made).expect("the disk is sound");
    check_device(&made).expect("its pages are back");
    (made, random)
}

/// What a device may make of a page: what is read then, and what that is called.
fn damages(store: &Store, number: PageNumber, old: &[u8]) -> Vec<(Vec<u8>, FaultKind)> {
    let sound = bytes_of(store, number);
    let neighbour = if number.get() == 1 { 2 } else { number.get() - 1 };
    let torn = [&sound[..64], &old[64..]].concat();
    let mut damages = vec![
        (vec![0; PAGE_BYTES], FaultKind::Zeroed),
        (bytes_of(store, PageNumber(neighbour)), FaultKind::Misplaced),
        (old.to_vec(), FaultKind::LostWrite),
        (torn, FaultKind::Damaged),
    ];
    for bit in [8 * 8, 8 * 20, 8 * 40, 8 * (PAGE_BYTES - 1) + 7] {
        let mut flipped = sound.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        damages.push((flipped, FaultKind::Damaged));
    }
    damages
}

/// Damages each page of the page file in each way, one after the other, and looks at what comes.
fn damage_each(store: &Store, old: &[Vec<u8>]) -> Result<(), String> {
    for number in numbers() {
        for (bytes, kind) in damages(store, number, &old[number.get() as usize - 1]) {
            let before = bytes_of(store, number);
            overwrite(store, number, &bytes);
            let (mut page, wanted) = (Page::zeroed(), store.model.page(number));
            let loaded = store.pages.load(number, &mut page);
            let loaded = loaded.map_err(|error| format!("page {number}, {kind:?}: {error}"))?;
            assert_eq!(loaded.repaired, Some(kind), "page {number}");
            assert!(page.same_bytes(&wanted), "{page:?} is not {wanted:?}");
            clean_now(store).map_err(|error| error.to_string())?;
            assert!(bytes_of(store, number) == before, "page {number} was not written again");
        }
    }
    check_device(store)
}

/// The pages as they are on the device, before each of them gets more records there.
fn outdated(store: &mut Store, random: &mut Random) -> Vec<Vec<u8>> {
    let old = numbers().map(|number| bytes_of(store, number)).collect();
    archive(store, random, 9);
    clean_now(store).expect("the disk is sound");
    old
}

#[test]
fn each_page_is_repaired_although_the_backup_is_gone() {
    for is_forward in [false, true] {
        let (mut store, mut random) = made(1, is_forward);
        let old = outdated(&mut store, &mut random);
        damage_each(&store, &old).expect("the archive has a copy of it");
        let again = after_power_cut(&store);
        damage_each(&again, &old).expect("the archive has a copy of it");
    }
}

#[test]
fn a_page_that_has_had_no_record_since_the_backup_is_repaired() {
    let (store, _) = made(2, true);
    for number in numbers() {
        overwrite(&store, number, &[7; PAGE_BYTES]);
    }
    check_found(&store).expect("the archive has a copy of each");
    clean_now(&store).expect("the disk is sound");
    check_device(&after_power_cut(&store)).expect("they were written again");
}

#[test]
fn a_store_whose_archive_has_no_copies_of_the_backups_pages_is_noticed() {
    let _off = switch_off(Invariant::BackedUpPagesAreArchived);
    let (store, _, backup) = backed_up(1);
    let (made, _) = open(&backup, At::End, &store).expect("it is a backup");
    let lost = numbers().filter(|number| made.pages.load(*number, &mut Page::zeroed()).is_err());
    assert!(lost.count() > 0, "pages have something to begin with");
}

#[test]
fn a_store_made_from_a_backup_can_be_backed_up_and_restored_at_once_and_later() {
    let (mut store, mut random) = made(3, true);
    for round in 0..3 {
        let again = elsewhere(round);
        back_up(&store, &again).expect("the disk is sound");
        check(&open(&again, At::End, &store).expect("it is a backup").0)
            .expect("everything is there");
        archive(&mut store, &mut random, 7);
        clean_now(&store).expect("the disk is sound");
        bring_forward(&store, &again).expect("the disk is sound");
        check(&open(&again, At::End, &store).expect("it is a backup").0)
            .expect("everything is there");
    }
}

#[test]
fn a_store_made_from_a_backup_is_made_again_from_its_own_archive_also_at_once() {
    let (mut store, mut random) = made(4, false);
    let begun = store.found.next;
    for _ in 0..3 {
        let end = store.pages.archived();
        for at in [At::End, At::Rsn(begun), At::Rsn(end)] {
            let (found, moment) = open(&store.files, at, &store).expect("it is in the archive");
            assert!(moment.rsn == if at == At::Rsn(begun) { begun } else { end });
            check(&found).expect("everything is there");
        }
        let early =
            restored(&directories(&store.files), At::Rsn(Rsn(begun.get() - 1)), &new_log(1));
        let Err(RestoreError::Outside { oldest, .. }) = early else { panic!("{early:?}") };
        assert_eq!(oldest.rsn, begun, "what was before the backup is not known");
        archive(&mut store, &mut random, 3);
    }
}

#[test]
fn runs_are_merged_with_the_one_that_has_the_backup_and_pages_are_as_they_were() {
    let (store, mut random) = made(5, true);
    assert_eq!(names(&store), ["1"], "one run has it all");
    let store = filled(store, &mut random, RUNS * RUNS, 4);
    clean_now(&store).expect("the disk is sound");
    merge(&store).expect("the disk is sound");
    assert_eq!(names(&store), ["0", "1", "2"]);
    for store in [after_power_cut(&store), store] {
        store.pages.restore().expect("the disk is sound");
        check_found(&store).expect("every page can be built");
        check(&open(&store.files, At::End, &store).expect("nothing is missing").0)
            .expect("everything is there");
    }
}

#[test]
fn a_store_made_as_of_the_end_of_a_trimmed_run_is_made_again_from_its_archive_at_once() {
    let store = trimming(Keep::Repair);
    merge(&store).expect("the disk is sound");
    let archive = archive_of(&store.files);
    let trimmed = archive.runs().iter().rfind(|run| run.is_trimmed()).expect("it was trimmed");
    let (first, moment) =
        open(&store.files, At::Rsn(trimmed.span().end), &store).expect("it is in the archive");
    assert_eq!(moment.rsn, trimmed.span().end);
    let (second, again) = open(&first.files, At::End, &first).expect("it is in the archive");
    assert_eq!((again.rsn, second.found.free.len()), (moment.rsn, first.found.free.len()));
    assert_eq!(second.found.losers, first.found.losers);
    check(&second).expect("everything is there");
}

#[test]
fn a_backup_with_all_records_reaches_back_to_the_first() {
    let (mut store, mut random) = (Store::new(6), Random::new(6));
    archive(&mut store, &mut random, 3);
    let early = store.pages.archived();
    archive(&mut store, &mut random, 3);
    let backup = elsewhere(6);
    back_up(&store, &backup).expect("the disk is sound");
    assert_eq!(archive_of(&backup).begin(), Some(Rsn::FIRST), "it has all records");
    for at in [At::Rsn(early), At::End] {
        check(&open(&backup, at, &store).expect("it is in the backup").0)
            .expect("everything is there");
    }
}

#[test]
fn a_page_that_is_damaged_in_the_backup_is_refused_by_its_number_unless_its_records_do() {
    let mut refused = 0;
    for seed in 1..6 {
        let (store, _, backup) = backed_up(seed);
        let bit = 8 * (3 * PAGE_BYTES as u64 + 99);
        backup.flip_bit(Path::new("pages"), bit).expect("it is there");
        let (made, _) = open(&backup, At::End, &store).expect("it is a backup");
        for number in numbers() {
            let mut page = Page::zeroed();
            match made.pages.load(number, &mut page) {
                Ok(_) => assert!(page.same_bytes(&made.model.page(number))),
                Err(FetchError::Lost { .. }) if number == PageNumber(3) => refused += 1,
                Err(error) => panic!("page {number}: {error}"),
            }
        }
    }
    assert!(refused > 0, "its records always did");
}

#[test]
fn a_power_cut_at_any_operation_of_such_a_stores_cleaning_and_archiving_loses_nothing() {
    for mood in [Mood::LoseAll, Mood::KeepAll] {
        let mut operation = 1;
        loop {
            let (store, mut random) = made(8, true);
            let store = filled(store, &mut random, 2, 4);
            store.files.cut_power_at(store.files.operations() + operation);
            let through = clean_now(&store).is_ok() && store.pages.archive_all().is_ok();
            let cut = store.files.after_power_cut_in(mood, operation);
            let found = Store::open(&cut, store.model.clone()).expect("it opens");
            check_found(&found).unwrap_or_else(|error| panic!("{operation}, {mood:?}: {error}"));
            clean_now(&found).expect("the disk is sound");
            check_device(&found).unwrap_or_else(|error| panic!("{operation}, {mood:?}: {error}"));
            if through {
                break;
            }
            operation += 1;
        }
        assert!(operation > 5, "there are more operations than {operation}");
    }
}
