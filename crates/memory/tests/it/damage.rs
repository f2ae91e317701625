//! Regions with wrong bytes in them, and regions whose server died between two stores.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use holdfast_memory::{AttachError, Marks, Medium, Region};

use crate::common::{IDENTITY, Random, append, create, for_seeds, path_of, shm};

/// Where things lie, as FORMAT.md says; the crate's own test compares it with the code.
const HEADER_CHECK: usize = 12;
const GENERATION: usize = 128;
const CONTROL: usize = 4096;
const DURABLE: usize = 4160;
const TAIL: usize = 4224;
const RESET_PENDING: usize = 4356;
const RESET_LSN: usize = 4360;
const ROSTER_PUBLISHED: usize = 4368;
const WORDS: usize = 4416;

/// A region with something in every part, its image, and its marks.
fn sample() -> (tempfile::TempDir, Medium, Vec<u8>, Marks) {
    let (folder, medium) = shm();
    let region = create(&medium);
    assert!(append(&region, 3000));
    region.set_durable(2000);
    region.release(1000);
    region.roster().append(b"one").unwrap();
    region.word(1).store(1, Ordering::Relaxed);
    let marks = region.marks();
    drop(region);
    let image = fs::read(path_of(&medium)).unwrap();
    (folder, medium, image, marks)
}

/// Puts other bytes into the region that nobody serves.
fn restore(medium: &Medium, image: &[u8]) {
    let file = OpenOptions::new().write(true).open(path_of(medium)).unwrap();
    file.write_all_at(image, 0).unwrap();
}

fn put(image: &mut [u8], at: usize, value: u64) {
    image[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn a_damaged_superblock_gives_an_error_or_the_same_region() {
    for_seeds("a_damaged_superblock_gives_an_error_or_the_same_region", 1000, |random| {
        let (_folder, medium, image, marks) = sample();
        let mut damaged = image;
        // Mostly in the part that means something.
        let reach = if random.below(4) == 0 { 4096 } else { 136 };
        for _ in 0..=random.below(4) {
            let at = random.below(reach) as usize;
            damaged[at] ^= 1 + random.below(255) as u8;
        }
        restore(&medium, &damaged);
        if let Ok(region) = Region::attach(&medium) {
            let found = (region.identity(), region.marks(), region.generation());
            assert_eq!(found, (IDENTITY, marks, 2));
            assert_eq!(region.roster().records().unwrap(), [b"one"]);
        }
    });
}

#[test]
fn a_damaged_control_page_gives_an_error_or_marks_in_order() {
    for_seeds("a_damaged_control_page_gives_an_error_or_marks_in_order", 500, |random| {
        let (_folder, medium, image, _) = sample();
        let mut damaged = image;
        for _ in 0..=random.below(4) {
            let at = CONTROL + random.below((WORDS - CONTROL) as u64) as usize;
            damaged[at] ^= 1 + random.below(255) as u8;
        }
        restore(&medium, &damaged);
        if let Ok(region) = Region::attach(&medium) {
            assert_eq!(region.marks().fault(region.ring_bytes()), None);
            drop(region.lock());
        }
        drop(Region::observe(&medium).unwrap());
    });
}

#[test]
fn each_damaged_field_is_named_with_its_place() {
    let (_folder, medium, image, _) = sample();
    let cases = [
        (0, "magic", 0),
        (8, "version", 8),
        (16, "header_check", HEADER_CHECK),
        (127, "header_check", HEADER_CHECK),
        (GENERATION, "generation", GENERATION),
        (GENERATION + 7, "generation", GENERATION),
        (DURABLE + 1, "tail", TAIL),
        (TAIL + 7, "tail", TAIL),
        (RESET_PENDING + 1, "reset_pending", RESET_PENDING),
        (ROSTER_PUBLISHED + 1, "roster_published", ROSTER_PUBLISHED),
    ];
    for (at, field, offset) in cases {
        let mut damaged = image.clone();
        damaged[at] ^= 0x40;
        restore(&medium, &damaged);
        match Region::attach(&medium) {
            Err(AttachError::Damaged { field: found, offset: place }) => {
                assert_eq!((found, place as usize), (field, offset), "damage at {at}");
            }
            other => panic!("damage at {at}: {other:?}"),
        }
    }
}

#[test]
fn another_version_is_told_apart_from_damage() {
    let (_folder, medium, image, _) = sample();
    let mut other = image;
    other[8] = 9;
    let check = crc32c::crc32c_append(crc32c::crc32c(&other[..12]), &other[16..128]);
    other[12..16].copy_from_slice(&check.to_le_bytes());
    restore(&medium, &other);
    let refused = Region::attach(&medium);
    let expected = matches!(refused, Err(AttachError::OtherVersion { found: 9, known: 2 }));
    assert!(expected, "{refused:?}");
}

#[test]
fn a_right_check_over_a_wrong_field_is_still_damage() {
    let (_folder, medium, image, _) = sample();
    let fields = [
        (32, "medium"),
        (36, "section_count"),
        (40, "region_bytes"),
        (96, "content"),
        (104, "reserved"),
        (72, "roster"),
    ];
    for (at, field) in fields {
        let mut wrong = image.clone();
        wrong[at] ^= 0x80;
        let check = crc32c::crc32c_append(crc32c::crc32c(&wrong[..12]), &wrong[16..128]);
        wrong[12..16].copy_from_slice(&check.to_le_bytes());
        restore(&medium, &wrong);
        match Region::attach(&medium) {
            Err(AttachError::Damaged { field: found, .. }) => assert_eq!(found, field),
            other => panic!("{field}: {other:?}"),
        }
    }
}

#[test]
fn a_region_cut_short_is_damaged_wherever_it_was_cut() {
    let (_folder, medium, image, _) = sample();
    for bytes in (512..image.len()).step_by(512) {
        fs::write(path_of(&medium), &image[..bytes]).unwrap();
        match Region::attach(&medium) {
            Err(AttachError::Damaged { field: "length" | "region_bytes", .. }) => {}
            other => panic!("cut to {bytes}: {other:?}"),
        }
    }
}

/// The words in which two images differ, and some of them carried over: what a death leaves
/// between two stores of the change, in whatever order the stores reach the region.
fn half_way(before: &[u8], after: &[u8], random: &mut Random) -> Vec<u8> {
    let mut between = before.to_vec();
    for at in (0..before.len()).step_by(8) {
        if random.below(2) == 0 {
            between[at..at + 8].copy_from_slice(&after[at..at + 8]);
        }
    }
    between
}

/// Attaches, changes the roster, and gives the region's bytes before and after.
fn change_roster(medium: &Medium, change: impl Fn(&Region)) -> (Vec<u8>, Vec<u8>) {
    let region = Region::attach(medium).unwrap();
    let before = fs::read(path_of(medium)).unwrap();
    change(&region);
    drop(region);
    (before, fs::read(path_of(medium)).unwrap())
}

#[test]
fn a_death_while_the_roster_changes_leaves_the_old_records_or_the_new() {
    for_seeds(
        "a_death_while_the_roster_changes_leaves_the_old_records_or_the_new",
        200,
        |random| {
            let (_folder, medium, _, _) = sample();
            let rewrites = random.below(2) == 0;
            let (before, after) = change_roster(&medium, |region| {
                let roster = region.roster();
                if rewrites { roster.rewrite(["two", "three"]) } else { roster.append(b"two") }
                    .unwrap();
            });
            let mut between = half_way(&before, &after, random);
            let published = ROSTER_PUBLISHED..ROSTER_PUBLISHED + 8;
            between[published.clone()].copy_from_slice(&before[published]);
            restore(&medium, &between);
            let region = Region::attach(&medium).unwrap();
            assert_eq!(region.roster().records().unwrap(), [b"one"]);
            drop(region);

            restore(&medium, &after);
            let records = Region::attach(&medium).unwrap().roster().records().unwrap();
            let expected: &[&[u8]] = if rewrites { &[b"two", b"three"] } else { &[b"one", b"two"] };
            assert_eq!(records, expected);
        },
    );
}

#[test]
fn a_damaged_record_is_reported_and_not_returned() {
    for_seeds("a_damaged_record_is_reported_and_not_returned", 100, |random| {
        let (_folder, medium, image, _) = sample();
        let mut damaged = image;
        // The record: 8 bytes of header, 3 of its own, at the start of the section.
        damaged[8192 + random.below(11) as usize] ^= 1 + random.below(255) as u8;
        restore(&medium, &damaged);
        let fault = Region::attach(&medium).unwrap().roster().records().unwrap_err();
        assert_eq!(fault.offset, 8192);
    });
}

#[test]
fn a_death_inside_a_reset_is_finished_by_the_next_attach() {
    for_seeds("a_death_inside_a_reset_is_finished_by_the_next_attach", 50, |random| {
        let (_folder, medium, image, _) = sample();
        let lsn = random.next() >> 1;
        let mut between = image;
        put(&mut between, RESET_LSN, lsn);
        between[RESET_PENDING] = 1;
        for mark in [CONTROL, DURABLE, TAIL] {
            if random.below(2) == 0 {
                put(&mut between, mark, lsn);
            }
        }
        restore(&medium, &between);
        let region = Region::attach(&medium).unwrap();
        assert_eq!(region.marks(), Marks { released: lsn, durable: lsn, tail: lsn });
        drop(region);
        let again = Region::attach(&medium).unwrap();
        assert_eq!(again.marks().tail, lsn, "the note is gone");
    });
}
