//! Disks with wrong bytes in them are refused, and each refusal says what is wrong.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use holdfast_blocks::{AttachVdiskError, DiskFault, Vdisk};
use holdfast_io::{Blocks, BlocksError};
use holdfast_memory::{Area, AreaSpec, Medium, Region, RegionSpec};

use crate::common::{BLOCK, IDENTITY, content, create, for_seeds, path_of, shm};

/// Where the area begins in its region, and where things lie in it, as FORMAT.md says.
const AREA: usize = 3 * 4096;
const HEADER: usize = AREA;
const INTENT: usize = AREA + 4096;
const MAP: usize = AREA + 8192;

const BLOCKS: usize = 10;
const SIZE: u64 = (BLOCKS * BLOCK) as u64;

/// A disk whose first eight blocks are full of their number and one, and its bytes.
fn sample() -> (tempfile::TempDir, Medium, Vec<u8>) {
    let (folder, medium) = shm();
    let disk = create(&medium, BLOCKS);
    for block in 0..8 {
        disk.write(&[block as u8 + 1; BLOCK], (block * BLOCK) as u64).unwrap();
    }
    drop(disk);
    let image = fs::read(path_of(&medium)).unwrap();
    (folder, medium, image)
}

/// Puts other bytes into the region that nobody serves.
fn restore(medium: &Medium, image: &[u8]) {
    let file = OpenOptions::new().write(true).open(path_of(medium)).unwrap();
    file.write_all_at(image, 0).unwrap();
}

fn fault(medium: &Medium) -> AttachVdiskError {
    Vdisk::attach(medium, SIZE).unwrap_err()
}

/// A check as FORMAT.md says: begun with the identity.
fn check(parts: &[&[u8]]) -> [u8; 4] {
    let all = std::iter::once(&IDENTITY[..]).chain(parts.iter().copied());
    all.fold(0, holdfast_io::checksum::crc32c).to_le_bytes()
}

#[test]
fn any_damage_of_header_map_or_intent_gives_an_error_or_the_same_disk() {
    for_seeds(
        "any_damage_of_header_map_or_intent_gives_an_error_or_the_same_disk",
        1000,
        |_, random| {
            let (_folder, medium, image) = sample();
            let expected = content(&Vdisk::attach(&medium, SIZE).unwrap());
            let mut damaged = image;
            for _ in 0..=random.below(4) {
                let (start, bytes) =
                    [(HEADER, 40), (INTENT, 48), (MAP, 8 * BLOCKS)][random.below(3) as usize];
                let at = start + random.below(bytes as u64) as usize;
                damaged[at] ^= 1 + random.below(255) as u8;
            }
            restore(&medium, &damaged);
            if let Ok(disk) = Vdisk::attach(&medium, SIZE) {
                assert!(content(&disk) == expected);
            }
        },
    );
}

#[test]
fn a_damaged_header_is_told() {
    let (_folder, medium, image) = sample();
    for at in 0..32 {
        let mut damaged = image.clone();
        damaged[HEADER + at] ^= 0x10;
        restore(&medium, &damaged);
        assert!(matches!(fault(&medium), AttachVdiskError::DamagedHeader), "byte {at}");
    }
}

#[test]
fn another_version_is_told_apart_from_damage() {
    let (_folder, medium, mut image) = sample();
    image[HEADER] = 9;
    let sum = check(&[&image[HEADER..HEADER + 4], &image[HEADER + 8..HEADER + 32]]);
    image[HEADER + 4..HEADER + 8].copy_from_slice(&sum);
    restore(&medium, &image);
    let expected = matches!(fault(&medium), AttachVdiskError::OtherVersion { found: 9, known: 1 });
    assert!(expected, "{}", fault(&medium));
}

#[test]
fn a_right_check_over_a_wrong_header_is_still_damage() {
    let (_folder, medium, image) = sample();
    for at in [9, 17, 19, 24, 31] {
        let mut wrong = image.clone();
        wrong[HEADER + at] ^= 0x40;
        let sum = check(&[&wrong[HEADER..HEADER + 4], &wrong[HEADER + 8..HEADER + 32]]);
        wrong[HEADER + 4..HEADER + 8].copy_from_slice(&sum);
        restore(&medium, &wrong);
        assert!(matches!(fault(&medium), AttachVdiskError::DamagedHeader), "byte {at}");
    }
}

#[test]
fn another_size_is_told_with_the_size_that_is_there() {
    let (_folder, medium, _) = sample();
    let refused = Vdisk::attach(&medium, SIZE + 4096).unwrap_err();
    let AttachVdiskError::OtherSize { found, asked } = refused else { panic!("{refused}") };
    assert_eq!((found, asked), (SIZE, SIZE + 4096));
    Vdisk::attach(&medium, SIZE).unwrap();
}

#[test]
fn a_region_that_holds_something_else_is_no_disk() {
    let (_folder, medium) = shm();
    let spec = RegionSpec { ring_bytes: 8192, roster_bytes: 0, identity: IDENTITY };
    drop(Region::create(&medium, &spec).unwrap());
    assert!(matches!(fault(&medium), AttachVdiskError::NoDisk { found } if found == [0; 8]));
    Region::remove(&medium).unwrap();
    let spec = AreaSpec { content: *b"ANOTHER\0", identity: IDENTITY, bytes: 8192 };
    drop(Area::create(&medium, &spec, |_| ()).unwrap());
    assert!(matches!(fault(&medium), AttachVdiskError::NoDisk { found } if found == *b"ANOTHER\0"));
}

#[test]
fn a_damaged_map_word_is_told_with_its_block() {
    let (_folder, medium, image) = sample();
    for byte in 0..8 {
        let mut damaged = image.clone();
        damaged[MAP + 3 * 8 + byte] ^= 0x80;
        restore(&medium, &damaged);
        let refused = fault(&medium);
        let expected = matches!(refused, AttachVdiskError::Damaged(DiskFault::Word { block: 3 }));
        assert!(expected, "byte {byte}: {refused}");
    }
}

/// Makes the map name a cell, counted from 1, for a block, with a right check.
fn name(image: &mut [u8], block: u64, cell: u32) {
    let at = MAP + 8 * block as usize;
    image[at..at + 4].copy_from_slice(&cell.to_le_bytes());
    image[at + 4..at + 8].copy_from_slice(&check(&[&block.to_le_bytes(), &cell.to_le_bytes()]));
}

#[test]
fn two_blocks_with_one_cell_are_told() {
    let (_folder, medium, mut image) = sample();
    let cell = u32::from_le_bytes(image[MAP + 16..MAP + 20].try_into().unwrap());
    name(&mut image, 6, cell);
    restore(&medium, &image);
    let refused = fault(&medium);
    let expected =
        matches!(refused, AttachVdiskError::Damaged(DiskFault::Shared { block: 2, other: 6 }));
    assert!(expected, "{refused}");
}

#[test]
fn a_cell_behind_the_last_one_is_told() {
    let (_folder, medium, mut image) = sample();
    name(&mut image, 5, BLOCKS as u32 + 772);
    restore(&medium, &image);
    let refused = fault(&medium);
    let expected = matches!(refused, AttachVdiskError::Damaged(DiskFault::OutOfRange { block: 5 }));
    assert!(expected, "{refused}");
    name(&mut image, 5, BLOCKS as u32 + 771);
    restore(&medium, &image);
    Vdisk::attach(&medium, SIZE).unwrap();
}

#[test]
fn a_damaged_intent_is_told() {
    let (_folder, medium, image) = sample();
    let mut damaged = image.clone();
    damaged[INTENT] = 1;
    restore(&medium, &damaged);
    assert!(matches!(fault(&medium), AttachVdiskError::Damaged(DiskFault::Intent)));
    // Whole, and about a block that is not there.
    let entry = [BLOCKS as u32, 0].map(u32::to_le_bytes).concat();
    let sum = check(&[&1_u32.to_le_bytes(), &entry]);
    damaged[INTENT + 4..INTENT + 8].copy_from_slice(&sum);
    damaged[INTENT + 8..INTENT + 16].copy_from_slice(&entry);
    restore(&medium, &damaged);
    assert!(matches!(fault(&medium), AttachVdiskError::Damaged(DiskFault::Intent)));
}

#[test]
fn a_map_word_that_is_damaged_while_the_disk_is_used_fails_what_needs_it_and_nothing_else() {
    let (_folder, medium, image) = sample();
    let disk = Vdisk::attach(&medium, SIZE).unwrap();
    let file = OpenOptions::new().write(true).open(path_of(&medium)).unwrap();
    let at = MAP + 3 * 8;
    file.write_all_at(&[image[at] ^ 1], at as u64).unwrap();
    let mut block = [0; BLOCK];
    let third = 3 * BLOCK as u64;
    let refused = [
        disk.read(&mut block, third),
        disk.write(&block, third),
        disk.write(&[0; 2 * BLOCK], third - 1),
        disk.discard(third, BLOCK as u64),
    ];
    for outcome in refused {
        assert!(matches!(outcome, Err(BlocksError::Failed(_))), "{outcome:?}");
    }
    disk.write(&[9; BLOCK], 2 * BLOCK as u64).unwrap();
    disk.read(&mut block, 2 * BLOCK as u64).unwrap();
    assert_eq!(block, [9; BLOCK]);
}
