//! The model in numbers, and the tree as programs see it on a real mount (root, `/dev/fuse`).

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{self, JoinHandle};

use holdfast_io::{Files, OpenHow};

use super::*;
use holdfast_front::fuse::Unmount;

fn platter(turns_per_minute: u32) -> Platter {
    Platter::new(turns_per_minute, 100, Arc::new(RealClock)).unwrap()
}

#[test]
fn a_flush_ends_at_the_next_turn_plus_the_transfer() {
    let platter = platter(10_000);
    assert_eq!(platter.done_ns(0, 0), 6_000_000);
    assert_eq!(platter.done_ns(5_999_999, 0), 6_000_000);
    assert_eq!(platter.done_ns(6_000_000, 0), 12_000_000);
    assert_eq!(platter.done_ns(1, 100_000_000), 6_000_000 + 1_000_000_000);
}

#[test]
fn a_flush_of_nothing_is_free_and_not_counted() {
    let platter = platter(1);
    platter.flush(&AtomicU64::new(0));
    assert_eq!(platter.counts(), Counts { flushes: 0, flushed_bytes: 0 });
}

#[test]
fn those_who_wait_for_one_file_share_a_flush_or_two() {
    let (platter, dirty_bytes) = (platter(6_000), AtomicU64::new(8192));
    thread::scope(|scope| {
        (0..8).for_each(|_| drop(scope.spawn(|| platter.flush(&dirty_bytes))));
    });
    assert_eq!(platter.counts(), Counts { flushes: 1, flushed_bytes: 8192 });
}

#[test]
fn a_disk_that_does_not_turn_is_refused() {
    assert!(Platter::new(0, 100, Arc::new(RealClock)).is_none());
    assert!(Platter::new(10_000, 0, Arc::new(RealClock)).is_none());
}

/// A slow disk (that turns fast) on a mount.
struct Mounted {
    mountpoint: tempfile::TempDir,
    _backing: tempfile::TempDir,
    server: JoinHandle<Result<Counts, SlowDiskError>>,
}

impl Mounted {
    fn new() -> Self {
        Self::with(false)
    }

    fn with(syncs_below: bool) -> Self {
        let (backing, mountpoint) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let disk = SlowDisk {
            backing: backing.path().into(),
            mountpoint: mountpoint.path().into(),
            turns_per_minute: 600_000,
            megabytes_per_s: 1000,
            power_cut_seed: None,
            syncs_below,
        };
        let before = mountpoint.path().metadata().unwrap().dev();
        let server = thread::spawn(move || run(&disk));
        while mountpoint.path().metadata().unwrap().dev() == before {
            assert!(!server.is_finished(), "{:?}", server.join());
            thread::yield_now();
        }
        Self { mountpoint, _backing: backing, server }
    }

    fn path(&self) -> &Path {
        self.mountpoint.path()
    }

    fn end(self) -> Counts {
        fuse::unmount(self.mountpoint.path(), Unmount::Detach).unwrap();
        self.server.join().unwrap().unwrap()
    }
}

#[test]
fn each_synchronous_write_turns_the_platter_once() {
    let mounted = Mounted::new();
    let dsync = rustix::fs::OFlags::DSYNC.bits().cast_signed();
    let path = mounted.path().join("log");
    let file = File::options().write(true).create_new(true).custom_flags(dsync).open(path).unwrap();
    (0..10).for_each(|at| file.write_all_at(&[1; 8192], at * 8192).unwrap());
    file.sync_all().unwrap();
    drop(file);
    assert_eq!(mounted.end().flushes, 10);
}

#[test]
fn a_new_name_is_flushed_with_its_directory() {
    let mounted = Mounted::new();
    File::create(mounted.path().join("a")).unwrap();
    let directory = File::open(mounted.path()).unwrap();
    directory.sync_all().unwrap();
    directory.sync_all().unwrap();
    drop(directory);
    assert_eq!(mounted.end().flushes, 1);
}

#[test]
fn a_sync_that_is_handed_on_is_one_of_a_file_or_of_a_directory() {
    let mounted = Mounted::with(true);
    let file = File::create(mounted.path().join("a")).unwrap();
    file.write_all_at(&[1; 8192], 0).unwrap();
    file.sync_all().unwrap();
    let directory = File::open(mounted.path()).unwrap();
    directory.sync_all().unwrap();
    drop((file, directory));
    assert_eq!(mounted.end().flushes, 2);
}

#[test]
fn nodes_follow_the_renames_of_the_directories_above_them() {
    let mounted = Mounted::new();
    let at = |name: &str| mounted.path().join(name);
    fs::create_dir_all(at("a/b")).unwrap();
    let mut file =
        File::options().read(true).write(true).create_new(true).open(at("a/b/c")).unwrap();
    fs::rename(at("a"), at("z")).unwrap();
    file.write_all(b"text").unwrap();
    assert_eq!(fs::read(at("z/b/c")).unwrap(), b"text");
    fs::hard_link(at("z/b/c"), at("d")).unwrap();
    fs::remove_file(at("z/b/c")).unwrap();
    assert_eq!(fs::metadata(at("d")).unwrap().nlink(), 1);
    fs::set_permissions(at("d"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs::remove_file(at("d")).unwrap();
    fs::write(at("d"), "another").unwrap();
    file.rewind().unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), file.metadata().unwrap().nlink()), ("text", 0));
    drop(file);
    fs::remove_dir_all(at("z")).unwrap();
    assert_eq!(fs::read(at("d")).unwrap(), b"another");
    mounted.end();
}

#[test]
fn replaced_and_exchanged_names_lead_where_they_should() {
    let mounted = Mounted::new();
    let at = |name: &str| mounted.path().join(name);
    ["a", "b", "c"].iter().for_each(|name| fs::write(at(name), name).unwrap());
    let (cwd, exchange) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
    rustix::fs::renameat_with(cwd, at("a"), cwd, at("b"), exchange).unwrap();
    fs::rename(at("a"), at("c")).unwrap();
    fs::write(at("a"), "new").unwrap();
    let read = |name| fs::read_to_string(at(name)).unwrap();
    assert_eq!([read("a"), read("b"), read("c")], ["new", "a", "b"]);
    mounted.end();
}

#[test]
fn a_thousand_names_are_listed_once_each() {
    let mounted = Mounted::new();
    (0..1000).for_each(|n| drop(File::create(mounted.path().join(n.to_string())).unwrap()));
    let mut names: Vec<_> =
        fs::read_dir(mounted.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 1000);
    mounted.end();
}

/// A file of sectors that were synced full of 1, then written full of 2, and of 3.
fn twice_written(seed: u64, synced: bool) -> Vec<u8> {
    const SECTORS: usize = 64;
    let folder = tempfile::tempdir().unwrap();
    let files = RealFiles::open(folder.path()).unwrap();
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(Path::new("file"), how).unwrap();
    let unsynced = unsynced::Unsynced::new();
    unsynced.write(file.clone(), &[1; SECTORS * 512], 0).unwrap();
    unsynced.sync(file.metadata().unwrap().inode, || {});
    unsynced.write(file.clone(), &[2; SECTORS * 512], 0).unwrap();
    unsynced.write(file.clone(), &[3; SECTORS * 512], 0).unwrap();
    if synced {
        unsynced.sync(file.metadata().unwrap().inode, || {});
    }
    unsynced.cut(seed).unwrap();
    fs::read(folder.path().join("file")).unwrap()
}

#[test]
fn a_power_cut_tears_what_was_not_synced_at_sectors_and_nowhere_else() {
    let left = twice_written(7, false);
    let firsts: Vec<u8> = left.chunks(512).map(|sector| sector[0]).collect();
    assert!(left.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
    assert!([1, 2, 3].iter().all(|value| firsts.contains(value)), "{firsts:?}");
    assert_ne!(left, twice_written(8, false), "another seed, another cut");
}

#[test]
fn a_power_cut_during_a_sync_takes_of_what_is_being_synced_and_of_what_comes_after() {
    let folder = tempfile::tempdir().unwrap();
    let files = RealFiles::open(folder.path()).unwrap();
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(Path::new("file"), how).unwrap();
    let inode = file.metadata().unwrap().inode;
    let write = |unsynced: &unsynced::Unsynced, value: u8| {
        unsynced.write(file.clone(), &[value; 64 * 512], 0).unwrap();
    };
    let values = || fs::read(folder.path().join("file")).unwrap();
    let disk = unsynced::Unsynced::new();
    write(&disk, 1);
    disk.sync(inode, || write(&disk, 2));
    disk.cut(7).unwrap();
    assert!(values().contains(&1) && values().contains(&2), "the second write was not synced");
    assert!(!values().contains(&0), "the first one was");
    let disk = unsynced::Unsynced::new();
    write(&disk, 3);
    disk.sync(inode, || assert!(disk.cut(7).unwrap() > 0));
    assert!(values().contains(&3) && values().contains(&1), "it was cut before it had been synced");
}

#[test]
fn a_power_cut_takes_nothing_that_was_synced() {
    assert!(twice_written(7, true).iter().all(|byte| *byte == 3));
}
