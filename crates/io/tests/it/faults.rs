//! Each fault strikes, once, and where it should.

use std::io::ErrorKind;
use std::path::Path;

use holdfast_io::fake::{EINTR, EIO, ENOSPC, Effect, FakeFiles, Fault, Mood, Operation};
use holdfast_io::{Files, OpenHow};

use super::{CREATE, contents, create};

fn fail(files: &FakeFiles, operation: Operation, skip: u64, effect: Effect) {
    files.fail(Fault { operation, skip, effect });
}

/// Panics unless all faults set up have struck.
fn all_fired(files: &FakeFiles, count: u64) {
    assert_eq!((files.faults_fired(), files.faults_waiting()), (count, 0));
}

/// What the disk alone holds.
fn on_disk(files: &FakeFiles, path: &str) -> Vec<u8> {
    contents(&files.after_power_cut_in(Mood::LoseAll, 0), path).expect("a synced name")
}

#[test]
fn the_chosen_call_fails_with_the_chosen_error_and_does_nothing() {
    for (errno, kind) in [(EIO, None), (ENOSPC, Some(ErrorKind::StorageFull))] {
        let files = FakeFiles::new(1);
        let file = create(&files, "f");
        fail(&files, Operation::Write, 2, Effect::Errno(errno));
        assert_eq!(file.write_at(b"1", 0).unwrap(), 1);
        assert_eq!(file.write_at(b"2", 1).unwrap(), 1);
        let error = file.write_at(b"3", 2).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(errno));
        assert!(kind.is_none_or(|kind| kind == error.kind()));
        assert_eq!(contents(&files, "f").unwrap(), b"12");
        assert_eq!(file.write_at(b"3", 2).unwrap(), 1);
        all_fired(&files, 1);
    }
}

#[test]
fn every_kind_of_call_can_be_made_to_fail() {
    use Operation::*;
    let files = FakeFiles::new(1);
    let (f, g) = (Path::new("f"), Path::new("g"));
    let file = create(&files, "f");
    for operation in Operation::ALL {
        fail(&files, operation, 0, Effect::Errno(EIO));
        let change = holdfast_io::Change::default();
        let failed = match operation {
            Open => files.open(f, CREATE).map(|_| ()),
            Metadata => file.metadata().map(|_| ()),
            ReadDir => files.read_dir(Path::new("")).map(|_| ()),
            ReadLink => files.read_link(f).map(|_| ()),
            MakeDir => files.make_dir(g, 0o700),
            MakeSymlink => files.make_symlink(g, b"f"),
            MakeNode => files.make_node(g, holdfast_io::Kind::Fifo, 0o600, 0),
            Link => files.link(f, g),
            Rename => files.rename(f, g),
            Exchange => files.exchange(f, f),
            RemoveFile => files.remove_file(f),
            RemoveDir => files.remove_dir(g),
            Change => files.change(f, &change),
            SyncDir => files.sync_dir(Path::new("")),
            Space => files.space().map(|_| ()),
            Limits => files.limits().map(|_| ()),
            Seek => file.seek(0, holdfast_io::Seek::Data).map(|_| ()),
            Read => file.read_at(&mut [0], 0).map(|_| ()),
            Write => file.write_at(b"x", 0).map(|_| ()),
            SyncData => file.sync_data(),
            SetLen => file.set_len(9),
            Reserve => file.reserve(0, 9),
            Punch => file.punch(0, 9),
            Xattr => files.xattr(f, b"user.a").map(|_| ()),
            SetXattr => files.set_xattr(f, b"user.a", b"1"),
            RemoveXattr => files.remove_xattr(f, b"user.a"),
            SyncAll => files.sync_all(),
        };
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(EIO), "{operation:?}");
    }
    all_fired(&files, Operation::ALL.len() as u64);
    assert_eq!(files.read_dir(Path::new("")).unwrap().len(), 1);
    assert_eq!(contents(&files, "f").unwrap(), b"");
}

#[test]
fn interrupted_and_short_calls_are_finished_by_the_full_ones() {
    let files = FakeFiles::new(1);
    let file = create(&files, "f");
    fail(&files, Operation::Write, 0, Effect::Short);
    fail(&files, Operation::Write, 1, Effect::Errno(EINTR));
    fail(&files, Operation::Read, 0, Effect::Errno(EINTR));
    fail(&files, Operation::Read, 1, Effect::Short);
    file.write_all_at(b"one sentence", 0).unwrap();
    let mut bytes = [0; 12];
    assert_eq!(file.read_full_at(&mut bytes, 0).unwrap(), 12);
    assert_eq!(&bytes, b"one sentence");
    all_fired(&files, 4);
}

#[test]
fn a_short_write_is_short() {
    let files = FakeFiles::new(1);
    fail(&files, Operation::Write, 0, Effect::Short);
    let written = create(&files, "f").write_at(b"one sentence", 0).unwrap();
    assert!((1..12).contains(&written));
    assert_eq!(contents(&files, "f").unwrap(), b"one sentence"[..written]);
}

#[test]
fn a_failed_sync_forgets_the_data_and_the_next_one_lies() {
    let files = FakeFiles::new(1);
    let file = create(&files, "f");
    file.write_all_at(b"old", 0).unwrap();
    file.sync_data().unwrap();
    files.sync_dir(Path::new("")).unwrap();
    fail(&files, Operation::SyncData, 0, Effect::DropsDirty);
    file.write_all_at(b"new", 0).unwrap();
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(EIO));
    file.sync_data().unwrap();
    assert_eq!(contents(&files, "f").unwrap(), b"new", "the cache still shows it");
    assert_eq!(on_disk(&files, "f"), b"old");
    all_fired(&files, 1);
}

#[test]
fn a_lost_write_is_acknowledged_and_synced_and_not_there() {
    let files = FakeFiles::new(1);
    let file = create(&files, "f");
    files.sync_dir(Path::new("")).unwrap();
    file.write_all_at(&[1; 1024], 0).unwrap();
    fail(&files, Operation::Write, 0, Effect::LostWrite);
    file.write_all_at(&[2; 512], 512).unwrap();
    file.sync_data().unwrap();
    assert_eq!(on_disk(&files, "f"), [1; 1024]);
    all_fired(&files, 1);
}

#[test]
fn a_misdirected_write_damages_one_place_and_misses_another() {
    let files = FakeFiles::new(1);
    let file = create(&files, "f");
    files.sync_dir(Path::new("")).unwrap();
    file.write_all_at(&[1; 8 * 512], 0).unwrap();
    fail(&files, Operation::Write, 0, Effect::MisdirectedWrite);
    file.write_all_at(&[2; 512], 3 * 512).unwrap();
    file.sync_data().unwrap();
    let found = on_disk(&files, "f");
    assert_eq!(found[3 * 512..4 * 512], [1; 512]);
    assert_eq!(found.iter().filter(|&&byte| byte == 2).count(), 512);
    all_fired(&files, 1);
}

#[test]
fn a_flipped_bit_is_read_and_survives_a_power_cut() {
    let files = FakeFiles::new(1);
    let file = create(&files, "f");
    file.write_all_at(&[0; 100], 0).unwrap();
    file.sync_data().unwrap();
    files.sync_dir(Path::new("")).unwrap();
    files.flip_bit(Path::new("f"), 50 * 8 + 3).unwrap();
    let mut expected = [0; 100];
    expected[50] = 8;
    assert_eq!(contents(&files, "f").unwrap(), expected);
    assert_eq!(on_disk(&files, "f"), expected);
    assert!(files.flip_bit(Path::new("f"), 800).is_err(), "there is no such bit");
    assert!(files.flip_bit(Path::new("g"), 0).is_err(), "there is no such file");
}

#[test]
fn a_full_disk_takes_what_fits_and_recovers_when_there_is_room() {
    let files = FakeFiles::new(1);
    files.set_capacity_bytes(Some(8192));
    let file = create(&files, "f");
    assert_eq!(file.write_at(&[1; 10_000], 0).unwrap(), 8192);
    let error = file.write_at(&[1; 10], 8192).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(file.reserve(8192, 1).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(files.space().unwrap().free_bytes, 0);
    assert_eq!(file.write_at(&[2; 10], 0).unwrap(), 10, "what is allocated can be written");
    files.set_capacity_bytes(Some(12_288));
    assert_eq!(file.write_at(&[1; 10], 8192).unwrap(), 10);
    drop(file);
    files.remove_file(Path::new("f")).unwrap();
    assert_eq!(files.space().unwrap().free_bytes, 12_288);
}

#[test]
fn a_reserved_range_is_never_refused_for_lack_of_space() {
    let files = FakeFiles::new(1);
    let file = create(&files, "f");
    file.reserve(0, 8192).unwrap();
    assert_eq!(file.metadata().unwrap().size_bytes, 0);
    files.set_capacity_bytes(Some(0));
    file.write_all_at(&[1; 8192], 0).unwrap();
}

#[test]
fn a_read_only_file_system_can_be_read() {
    let files = FakeFiles::new(1);
    let file = create(&files, "f");
    file.write_all_at(b"x", 0).unwrap();
    files.set_read_only(true);
    let refused = file.write_at(b"y", 0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
    assert!(files.make_dir(Path::new("d"), 0o700).is_err());
    assert!(files.open(Path::new("f"), OpenHow::default()).is_ok());
    assert_eq!(contents(&files, "f").unwrap(), b"x");
    files.set_read_only(false);
    file.write_all_at(b"y", 0).unwrap();
}
