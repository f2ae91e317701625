//! What is damaged is found, and refused.

use holdfast_io::Blocks;
use holdfast_snapshot::{Answer, OpenError, Refusal, Request, Snapshots};

use crate::support::{
    DISK_PAGES, Machine, PAGE, ask, bytes_of, content, disks, image, list, make, refused,
    room_bytes,
};

/// A machine with a snapshot, whose disk was changed since.
fn machine() -> (Machine, u64) {
    let machine = Machine::new();
    let empty_bytes = room_bytes(&machine.open());
    machine.disk.write(&content(2, DISK_PAGES), 0).unwrap();
    make(&machine.open(), 1, &content(1, 300)).unwrap();
    machine.disk.write(&content(3, DISK_PAGES), 0).unwrap();
    (machine, empty_bytes)
}

/// Flips one bit of the store's page that begins with these bytes.
fn damage(machine: &Machine, begins: &[u8]) {
    let store = bytes_of(&*machine.store);
    let page = store.chunks(PAGE).position(|page| page.starts_with(begins)).unwrap();
    let at = page * PAGE + begins.len() - 1;
    machine.store.write(&[store[at] ^ 1], at as u64).unwrap();
}

/// The first page that is not zeros: where in the image, and how it begins.
fn first_page(image: &[u8]) -> (u64, &[u8]) {
    let at = image.iter().position(|byte| *byte != 0).unwrap() / PAGE * PAGE;
    (at as u64, &image[at..][..16])
}

#[test]
fn a_damaged_page_of_memory_is_refused_and_the_rest_is_read() {
    let (machine, _) = machine();
    let memory = content(1, 300);
    let (offset, begins) = first_page(&memory);
    assert_eq!(image(&machine.open(), 1, 0).unwrap(), memory, "the canary");
    damage(&machine, begins);
    let snapshots = machine.open();
    let damaged = Refusal::Damaged { image: "memory".into(), offset };
    assert_eq!(image(&snapshots, 1, 0), Err(damaged));
    assert_eq!(image(&snapshots, 1, 1).unwrap(), content(2, DISK_PAGES));
}

#[test]
fn disks_are_not_touched_if_a_page_that_they_would_get_is_damaged() {
    let (machine, _) = machine();
    let before = content(2, DISK_PAGES);
    let (offset, begins) = first_page(&before);
    damage(&machine, begins);
    let damaged = Refusal::Damaged { image: "ram".into(), offset };
    assert_eq!(refused(&machine.open(), &Request::RestoreDisks { id: 1 }), damaged);
    assert_eq!(bytes_of(&*machine.disk), content(3, DISK_PAGES));
}

#[test]
fn a_damaged_index_is_listed_as_such_and_the_snapshot_can_be_removed() {
    let (machine, empty_bytes) = machine();
    let store = bytes_of(&*machine.store);
    // The index of the memory's 300 pages: small numbers, each with the check of a page.
    let is_index = |page: &&[u8]| {
        let number = |at: usize| u32::from_le_bytes(*page[at..].first_chunk().unwrap());
        (0..300).all(|entry| number(8 * entry) < 2048) && page[300 * 8..].iter().all(|it| *it == 0)
    };
    let found = store
        .chunks(PAGE)
        .enumerate()
        .skip(64)
        .find(|(_, page)| is_index(page) && page.iter().any(|byte| *byte != 0));
    let at = (found.unwrap().0 * PAGE) as u64;
    machine.store.write(&[0xFF; 8], at).unwrap();
    let snapshots = machine.open();
    assert_eq!(list(&snapshots)[0].images[0].held_bytes, None);
    assert!(list(&snapshots)[0].images[1].held_bytes.is_some());
    let damaged = Refusal::Damaged { image: "memory".into(), offset: 0 };
    assert_eq!(image(&snapshots, 1, 0), Err(damaged));
    assert_eq!(ask(&snapshots, &Request::Remove { id: 1 }), Answer::Done);
    assert_eq!(room_bytes(&snapshots), empty_bytes);
}

#[test]
fn disks_that_cannot_be_restored_to_the_end_are_named() {
    let (machine, _) = machine();
    let image = content(2, DISK_PAGES);
    let (_, begins) = first_page(&image);
    crate::death::die_in_restore(&machine);
    assert_eq!(machine.open().torn_disks(), Vec::<String>::new(), "the canary");
    crate::death::die_in_restore(&machine);
    damage(&machine, begins);
    let snapshots = machine.open();
    assert_eq!(snapshots.torn_disks(), ["ram"]);
    assert_eq!(ask(&snapshots, &Request::Remove { id: 1 }), Answer::Done);
    assert_eq!(machine.open().torn_disks(), Vec::<String>::new());
}

#[test]
fn what_is_no_directory_and_a_store_that_is_too_small_are_refused() {
    let open = |machine: &Machine| {
        let opened = Snapshots::open(machine.store.clone(), disks("ram", machine.disk.clone()));
        opened.map(drop)
    };
    for (at, expected) in [(0, "damaged"), (8, "version"), (16, "damaged"), (40, "damaged")] {
        let (machine, _) = machine();
        let mut byte = [0];
        machine.store.read(&mut byte, at).unwrap();
        machine.store.write(&[byte[0] ^ 1], at).unwrap();
        let error = open(&machine).unwrap_err().to_string();
        assert!(error.contains(expected), "{at}: {error}");
    }
    let small = Machine { store: crate::support::disk_of(127), ..Machine::new() };
    assert!(matches!(open(&small), Err(OpenError::TooSmall { .. })));
}
