//! Making, attaching, reading and writing a disk.

use holdfast_blocks::{AttachVdiskError, CreateVdiskError, Vdisk, VdiskSpec};
use holdfast_io::{Blocks, BlocksError};
use holdfast_memory::{AttachError, CreateError, Medium, Region};

use crate::common::{BLOCK, Change, IDENTITY, content, create, for_seeds, sent, shm};

fn held(medium: &Medium) -> u64 {
    Region::observe(medium).unwrap().word(Vdisk::BLOCKS_HELD)
}

#[test]
fn random_changes_leave_what_they_leave_in_a_vector() {
    for_seeds("random_changes_leave_what_they_leave_in_a_vector", 20, |_, random| {
        let (_folder, medium) = shm();
        let size = 600 * BLOCK;
        let mut disk = create(&medium, 600);
        let mut model = vec![0; size];
        for _ in 0..60 {
            let most = if random.chance(10) { size } else { 40 * BLOCK };
            let change = Change::any(random, 0, size, most);
            change.apply(&disk);
            change.model(&mut model);
            let start = random.below(size as u64) as usize;
            let bytes = random.below((size - start) as u64 + 1) as usize;
            let mut found = vec![1; bytes];
            disk.read(&mut found, start as u64).unwrap();
            assert!(found == model[start..start + bytes], "{bytes} bytes from {start}");
            if bytes > 0 {
                assert!(sent(&disk, start, bytes) == found, "{bytes} bytes from {start} are sent");
            }
            for hole in holes(&disk) {
                assert!(model[hole.clone()].iter().all(|byte| *byte == 0), "a hole at {hole:?}");
            }
            if random.chance(10) {
                drop(disk);
                disk = Vdisk::attach(&medium, size as u64).unwrap();
            }
        }
        assert!(content(&disk) == model);
    });
}

/// Where the disk has no room.
fn holes(disk: &Vdisk) -> Vec<std::ops::Range<usize>> {
    let (mut at, mut holes) = (0, Vec::new());
    while at < disk.size_bytes() {
        let extent = disk.extent_at(at).unwrap();
        assert!(at < extent.end && extent.end <= disk.size_bytes(), "{extent:?} at {at}");
        if extent.is_hole {
            holes.push(at as usize..extent.end as usize);
        }
        at = extent.end;
    }
    holes
}

#[test]
fn a_disk_has_room_where_it_was_written_and_none_elsewhere() {
    let disk = create(&Medium::Private, 600);
    assert!(holes(&disk).iter().eq([&(0..600 * BLOCK)]));
    disk.write(&[1; 3 * BLOCK], 7 * BLOCK as u64).unwrap();
    assert_eq!(holes(&disk), [0..7 * BLOCK, 10 * BLOCK..600 * BLOCK]);
    disk.discard(8 * BLOCK as u64, BLOCK as u64).unwrap();
    assert_eq!(holes(&disk), [0..7 * BLOCK, 8 * BLOCK..9 * BLOCK, 10 * BLOCK..600 * BLOCK]);
    let behind = disk.extent_at(disk.size_bytes());
    assert!(matches!(behind, Err(BlocksError::OutOfRange)), "{behind:?}");
}

#[test]
fn a_new_disk_reads_as_zeros_on_every_medium() {
    let (_folder, shm) = shm();
    let folder = tempfile::tempdir().unwrap();
    let file = Medium::File { path: folder.path().join("file") };
    let pmem = Medium::Pmem { path: folder.path().join("pmem") };
    for medium in [Medium::Private, shm, file, pmem] {
        let disk = create(&medium, 5);
        assert_eq!(disk.size_bytes(), 5 * BLOCK as u64);
        assert_eq!(content(&disk), vec![0; 5 * BLOCK]);
        disk.write(b"some", 4094).unwrap();
        disk.flush().unwrap();
        assert!(!disk.survives().os, "no memory of this machine outlives the system");
        assert_eq!(disk.survives().process, medium != Medium::Private);
        if disk.survives().process {
            drop(disk);
            let disk = Vdisk::attach(&medium, 5 * BLOCK as u64).unwrap();
            assert_eq!(content(&disk)[4093..4099], *b"\0some\0", "{medium:?}");
            assert_eq!((disk.generation(), disk.identity()), (2, IDENTITY));
        }
    }
}

#[test]
fn a_device_with_old_bytes_behind_a_blank_head_is_a_disk_of_zeros() {
    let (_folder, medium) = shm();
    drop(create(&medium, 5));
    let path = medium.path().unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    bytes[..8192].fill(0);
    bytes[8192..].fill(0xa5);
    std::fs::write(path, &bytes).unwrap();
    assert_eq!(content(&create(&medium, 5)), vec![0; 5 * BLOCK]);
}

#[test]
fn a_range_that_ends_behind_the_disk_changes_nothing() {
    let disk = create(&Medium::Private, 2);
    let size = disk.size_bytes();
    disk.write(&[7; 2 * BLOCK], 0).unwrap();
    for offset in [size - 3, size + 1, u64::MAX - 1] {
        let refused = [
            disk.read(&mut [0; 4], offset),
            disk.write(&[1; 4], offset),
            disk.write_zeroes(offset, 4),
            disk.discard(offset, 4),
        ];
        for outcome in refused {
            assert!(matches!(outcome, Err(BlocksError::OutOfRange)), "{offset}: {outcome:?}");
        }
    }
    assert!(matches!(disk.discard(0, u64::MAX), Err(BlocksError::OutOfRange)));
    assert_eq!(content(&disk), vec![7; 2 * BLOCK]);
    disk.write(&[], size).unwrap();
    disk.read(&mut [], size).unwrap();
    disk.discard(size, 0).unwrap();
}

#[test]
fn discarded_blocks_read_as_zeros_and_are_counted_as_given_back() {
    let (_folder, medium) = shm();
    let disk = create(&medium, 100);
    assert_eq!(held(&medium), 0);
    disk.write(&vec![7; 100 * BLOCK], 0).unwrap();
    assert_eq!(held(&medium), 100);
    disk.discard(BLOCK as u64 - 1, 3 * BLOCK as u64).unwrap();
    assert_eq!(held(&medium), 98, "two whole blocks; of two others a part");
    disk.write_zeroes(50 * BLOCK as u64, 10 * BLOCK as u64).unwrap();
    assert_eq!(held(&medium), 88);
    let mut expected = vec![7; 100 * BLOCK];
    expected[BLOCK - 1..4 * BLOCK - 1].fill(0);
    expected[50 * BLOCK..60 * BLOCK].fill(0);
    assert!(content(&disk) == expected);
    drop(disk);
    let disk = Vdisk::attach(&medium, 100 * BLOCK as u64).unwrap();
    assert_eq!(held(&medium), 88);
    assert!(content(&disk) == expected);
}

#[test]
fn a_full_disk_is_written_over_again_and_again() {
    let disk = create(&Medium::Private, 300);
    for round in 1..=20 {
        disk.write(&vec![round; 300 * BLOCK - 2], 1).unwrap();
    }
    let mut expected = vec![20; 300 * BLOCK];
    (expected[0], expected[300 * BLOCK - 1]) = (0, 0);
    assert!(content(&disk) == expected);
}

#[test]
fn a_size_that_no_disk_has_is_refused() {
    for size_bytes in [0, 1, 4095, 4097, 1 << 44, u64::MAX - 4095] {
        let spec = VdiskSpec { size_bytes, identity: IDENTITY };
        let refused = Vdisk::create(&Medium::Private, &spec);
        assert!(matches!(refused, Err(CreateVdiskError::BadSize { .. })), "{refused:?}");
    }
}

#[test]
fn a_disk_is_made_once_and_used_by_one_process() {
    let (_folder, medium) = shm();
    let disk = create(&medium, 3);
    let spec = VdiskSpec { size_bytes: 3 * BLOCK as u64, identity: IDENTITY };
    let refused = Vdisk::create(&medium, &spec);
    let exists = matches!(refused, Err(CreateVdiskError::Region(CreateError::Exists { .. })));
    assert!(exists, "{refused:?}");
    let refused = Vdisk::attach(&medium, 3 * BLOCK as u64);
    let in_use = matches!(refused, Err(AttachVdiskError::Region(AttachError::InUse { .. })));
    assert!(in_use, "{refused:?}");
    drop(disk);
    Vdisk::attach(&medium, 3 * BLOCK as u64).unwrap();
    let missing = Vdisk::attach(&Medium::Private, 3 * BLOCK as u64);
    assert!(matches!(missing, Err(AttachVdiskError::Region(AttachError::Missing))));
}
