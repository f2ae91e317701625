//! Making, attaching, observing, removing.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use holdfast_memory::{AttachError, CreateError, Marks, Medium, Region, boot_id};

use crate::common::{IDENTITY, append, create, path_of, pattern, shm, spec};

/// Where the run of the system is noted, as FORMAT.md says.
const BOOT: u64 = 4376;

#[test]
fn a_region_is_attached_as_its_last_server_left_it() {
    let (_folder, medium) = shm();
    let region = create(&medium);
    assert!(append(&region, 300));
    region.set_durable(200);
    region.release(100);
    region.word(63).store(77, Ordering::Relaxed);
    region.roster().append(b"first").unwrap();
    assert_eq!(region.generation(), 1);
    drop(region);

    let region = Region::attach(&medium).unwrap();
    assert_eq!(region.identity(), IDENTITY);
    assert_eq!(region.generation(), 2);
    assert_eq!(region.marks(), Marks { released: 100, durable: 200, tail: 300 });
    assert_eq!(region.pin(100).bytes(100, 200), pattern(100, 200));
    assert_eq!(region.word(63).load(Ordering::Relaxed), 77);
    assert_eq!(region.roster().records().unwrap(), [b"first"]);
}

#[test]
fn a_second_server_is_refused_while_the_first_lives() {
    let (_folder, medium) = shm();
    let region = create(&medium);
    match Region::attach(&medium) {
        Err(AttachError::InUse { pid }) => assert_eq!(pid, std::process::id()),
        other => panic!("{other:?}"),
    }
    assert!(matches!(Region::create(&medium, &spec()), Err(CreateError::Exists { .. })));
    drop(region);
    Region::attach(&medium).unwrap();
}

#[test]
fn a_served_region_is_observed() {
    let (_folder, medium) = shm();
    let region = create(&medium);
    assert!(append(&region, 300));
    region.word(5).store(9, Ordering::Relaxed);
    region.roster().append(b"seen").unwrap();
    let observed = Region::observe(&medium).unwrap();
    assert_eq!(observed.marks(), region.marks());
    assert_eq!(observed.generation(), Some(1));
    assert_eq!(observed.server_pid(), std::process::id());
    assert_eq!(observed.word(5), 9);
    assert_eq!(observed.roster_records().unwrap(), [b"seen"]);
    let mut copy = [0; 99];
    observed.copy_bytes(101, &mut copy).unwrap();
    assert_eq!(copy[..], pattern(101, 99));
    assert!(observed.copy_bytes(290, &mut copy).is_err());
}

#[test]
fn a_region_that_is_not_there_is_missing() {
    let (_folder, medium) = shm();
    assert!(matches!(Region::attach(&medium), Err(AttachError::Missing)));
    assert!(matches!(Region::observe(&medium), Err(AttachError::Missing)));
    assert!(matches!(Region::attach(&Medium::Private), Err(AttachError::Missing)));
}

#[test]
fn a_region_whose_making_never_finished_is_missing_and_can_be_made() {
    let (_folder, medium) = shm();
    for bytes in [0, 8192 + 4096 + 8192] {
        std::fs::write(path_of(&medium), vec![0; bytes]).unwrap();
        assert!(matches!(Region::attach(&medium), Err(AttachError::Missing)));
        drop(create(&medium));
        Region::attach(&medium).unwrap();
    }
}

#[test]
fn a_file_that_is_no_region_is_left_alone() {
    let (_folder, medium) = shm();
    for bytes in [&b"somebody's thesis"[..], &[0; 4000], &[0; 1 << 20]] {
        std::fs::write(path_of(&medium), bytes).unwrap();
        let refused = Region::create(&medium, &spec());
        assert!(matches!(refused, Err(CreateError::Occupied { .. })), "{refused:?}");
        assert_eq!(std::fs::read(path_of(&medium)).unwrap(), bytes);
    }
}

#[test]
fn a_removed_region_is_missing_and_a_served_one_is_not_removed() {
    let (_folder, medium) = shm();
    let region = create(&medium);
    let refused = Region::remove(&medium).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ResourceBusy);
    drop(region);
    Region::remove(&medium).unwrap();
    assert!(matches!(Region::attach(&medium), Err(AttachError::Missing)));
}

#[test]
fn whoever_serves_a_region_removes_that_one_and_nothing_that_has_its_name_by_now() {
    let (folder, medium) = shm();
    let (path, moved) = (path_of(&medium), folder.path().join("moved"));
    let region = create(&medium);
    std::fs::rename(&path, &moved).unwrap();
    assert!(!region.remove_this(&medium).unwrap(), "nothing has the name");
    std::fs::copy(&moved, &path).unwrap();
    assert!(!region.remove_this(&medium).unwrap(), "a copy has it");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&moved, &path).unwrap();
    assert!(!region.remove_this(&medium).unwrap(), "a link has it");
    std::fs::rename(&moved, &path).unwrap();
    assert!(region.remove_this(&medium).unwrap(), "it has its name back");
    assert!(!path.exists());
    drop(region);
    assert!(matches!(Region::attach(&medium), Err(AttachError::Missing)));
}

#[test]
fn a_region_of_another_medium_says_which() {
    let (_folder, medium) = shm();
    drop(create(&medium));
    let asked = Medium::File { path: path_of(&medium) };
    let refused = Region::attach(&asked);
    assert!(matches!(refused, Err(AttachError::OtherMedium { found: "shm" })), "{refused:?}");
}

#[test]
fn every_medium_with_a_file_survives_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("region");
    for medium in [Medium::File { path: path.clone() }, Medium::Pmem { path: path.clone() }] {
        let region = create(&medium);
        assert!(region.survives().process);
        assert!(!region.survives().os, "a plain file is no persistent memory");
        assert!(append(&region, 128));
        drop(region);
        let region = Region::attach(&medium).unwrap();
        assert_eq!(region.pin(0).bytes(0, 128), pattern(0, 128));
        drop(region);
        Region::remove(&medium).unwrap();
    }
}

#[test]
fn a_ring_in_a_file_that_an_earlier_run_of_the_system_used_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("region");
    let media = [
        Medium::File { path: path.clone() },
        Medium::Pmem { path: path.clone() },
        // What is called shared memory may lie anywhere.
        Medium::Shm { path: path.clone() },
    ];
    for medium in media {
        assert!(append(&create(&medium), 128));
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut boot = [0; 16];
        file.read_exact_at(&mut boot, BOOT).unwrap();
        let id = boot_id().unwrap().map(u64::to_le_bytes).concat();
        assert_eq!(boot, *id, "a region says in which run of the system it was used");
        file.write_all_at(&[1; 16], BOOT).unwrap();
        let before = std::fs::read(&path).unwrap();
        let refused = Region::attach(&medium);
        assert!(matches!(refused, Err(AttachError::OtherBoot)), "{refused:?}");
        assert!(std::fs::read(&path).unwrap() == before, "nothing was changed");
        // An older program noted nothing, and called memory what a restart leaves nothing of.
        file.write_all_at(&[0; 16], BOOT).unwrap();
        match Region::attach(&medium) {
            Ok(region) => assert_eq!((region.marks().tail, region.generation()), (128, 2)),
            refused => {
                let is_shm = matches!(medium, Medium::Shm { .. });
                assert!(is_shm && matches!(refused, Err(AttachError::OtherBoot)), "{refused:?}");
            }
        }
        Region::remove(&medium).unwrap();
    }
}

#[test]
fn shared_memory_in_which_an_older_program_noted_no_run_is_attached() {
    let (_folder, medium) = shm();
    assert!(append(&create(&medium), 128));
    let file = OpenOptions::new().write(true).open(path_of(&medium)).unwrap();
    file.write_all_at(&[0; 16], BOOT).unwrap();
    assert_eq!(Region::attach(&medium).unwrap().marks().tail, 128);
}

#[test]
fn huge_pages_are_refused_where_there_are_none() {
    let (_folder, medium) = shm();
    let asked = Medium::HugeTlb { path: path_of(&medium) };
    assert!(matches!(Region::create(&asked, &spec()), Err(CreateError::NotHugeTlb { .. })));
    assert!(!path_of(&medium).exists(), "nothing is left behind");
}

#[test]
fn a_device_that_is_not_there_does_not_become_a_file() {
    let path = std::path::PathBuf::from("/dev/pmem4095");
    let refused = Region::create(&Medium::Pmem { path: path.clone() }, &spec());
    assert!(matches!(refused, Err(CreateError::Io { .. })), "{refused:?}");
    assert!(!path.exists());
}

#[test]
fn a_region_that_cannot_exist_is_refused() {
    for ring_bytes in [0, 1, 4095, 5000, 12288, 1 << 63] {
        let mut asked = spec();
        asked.ring_bytes = ring_bytes;
        let refused = Region::create(&Medium::Private, &asked);
        assert!(matches!(refused, Err(CreateError::BadSpec(_))), "{ring_bytes}: {refused:?}");
    }
}

#[test]
fn memory_that_cannot_be_had_fails_the_making_and_not_a_later_store() {
    let (_folder, medium) = shm();
    let mut asked = spec();
    asked.ring_bytes = 1 << 45;
    let refused = Region::create(&medium, &asked);
    assert!(matches!(refused, Err(CreateError::Io { .. })), "{refused:?}");
    assert!(!path_of(&medium).exists(), "nothing is left behind");
}

#[test]
fn a_private_region_is_reattached_by_its_next_user() {
    let mut region = create(&Medium::Private);
    assert!(append(&region, 64));
    let mut guard = region.lock();
    guard.reserve(64).unwrap().fill(1);
    std::mem::forget(guard);
    std::mem::forget(region.pin(0));
    region.reattach().unwrap();
    assert_eq!(region.generation(), 2);
    assert!(append(&region, 64), "the lock that was left behind is taken over");
    region.set_durable(128);
    region.release(128);
}

#[test]
fn memory_whose_name_is_gone_gets_it_back_whole_and_nothing_else_is_touched() {
    let (_folder, medium) = shm();
    let region = create(&medium);
    assert!(append(&region, 300));
    let (path, held) = (path_of(&medium), OpenOptions::new().read(true).open(path_of(&medium)));
    let held = held.unwrap();
    let put_back_of = |held: &File| Region::put_back(&medium, held).map_err(|error| error.kind());
    let put_back = || put_back_of(&held).map(drop);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(put_back(), Err(ErrorKind::ResourceBusy), "it is served");
    drop(region);
    std::fs::write(&path, "another").unwrap();
    assert_eq!(put_back(), Err(ErrorKind::AlreadyExists));
    assert_eq!(std::fs::read(&path).unwrap(), b"another");
    std::fs::remove_file(&path).unwrap();
    let held_next = put_back_of(&held).unwrap();
    // Lost once more before anybody serves it, from what was made the first time.
    std::fs::remove_file(&path).unwrap();
    put_back_of(&held_next).unwrap();
    let region = Region::attach(&medium).unwrap();
    assert_eq!((region.identity(), region.marks().tail), (IDENTITY, 300));
    assert_eq!(region.pin(0).bytes(0, 300), pattern(0, 300));
}
