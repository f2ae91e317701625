//! A log whose region another host attaches while it is open here. That host is a copy of the
//! region, attached as hosts attach, whose first pages are put back over those of the region.

// A test that cannot go on stops.
#![allow(clippy::unwrap_used)]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use holdfast_io::fake::FakeFiles;
use holdfast_log::{AppendError, CommitError, Health, Log, Source};
use holdfast_memory::{Medium, Region, RegionSpec};
use tempfile::TempDir;

use crate::support::{CONFIG, IDENTITY, Model, RING_BYTES, open_shared};

/// Superblock and control page.
const HEAD_BYTES: usize = 8192;

/// Memory that several hosts have, and the log that they take turns with.
struct Shared {
    files: FakeFiles,
    folder: TempDir,
}

impl Shared {
    fn new() -> Shared {
        let files = FakeFiles::new(1);
        Log::create(&files, IDENTITY, &CONFIG).unwrap();
        let shared = Shared { files, folder: tempfile::tempdir_in("/dev/shm").unwrap() };
        let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 4096, identity: IDENTITY };
        drop(Region::create(&shared.medium("region"), &spec).unwrap());
        shared
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn medium(&self, name: &str) -> Medium {
        Medium::Pmem { path: self.path(name) }
    }

    fn open(&self) -> (Log, Source) {
        let region = Arc::new(Region::attach(&self.medium("region")).unwrap());
        let (log, recovery) = open_shared(&self.files, &region).unwrap();
        (log, recovery.source)
    }

    /// Another host attaches the region.
    fn is_taken(&self) {
        fs::copy(self.path("region"), self.path("copy")).unwrap();
        drop(Region::attach(&self.medium("copy")).unwrap());
        let head = fs::read(self.path("copy")).unwrap();
        let region = OpenOptions::new().write(true).open(self.path("region")).unwrap();
        region.write_all_at(&head[..HEAD_BYTES], 0).unwrap();
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path("region")).unwrap()
    }
}

#[track_caller]
fn assert_stale(said: &impl std::fmt::Display) {
    assert!(said.to_string().contains("stale generation"), "{said}");
}

#[test]
fn a_log_whose_region_another_host_has_takes_nothing_and_changes_nothing() {
    let shared = Shared::new();
    let (log, _) = shared.open();
    let mut model = Model::default();
    (0..5).for_each(|_| model.put_surely(&log, 700).unwrap());
    shared.is_taken();
    let before = shared.bytes();
    match log.append(1, &[b"late"]) {
        Err(AppendError::Poisoned(error)) => assert_stale(&error),
        other => panic!("{other:?}"),
    }
    match log.commit(log.marks().tail) {
        Err(CommitError::Poisoned(error)) => assert_stale(&error),
        other => panic!("{other:?}"),
    }
    for outcome in [log.drain().map(drop), log.prepare().map(drop)] {
        assert!(matches!(outcome, Err(CommitError::Poisoned(_))), "{outcome:?}");
    }
    assert!(matches!(log.health(), Health::Poisoned(_)));
    assert!(before == shared.bytes(), "the region is the other host's");
    drop(log);
    let (log, source) = shared.open();
    assert_eq!(source, Source::Ring);
    assert!(matches!(log.health(), Health::Sound));
    model.check(&log, true).unwrap();
}

#[test]
fn who_waits_for_the_device_learns_that_the_region_is_gone() {
    let shared = Shared::new();
    let (log, _) = shared.open();
    let mut model = Model::default();
    model.put_surely(&log, 700).unwrap();
    let tail = log.marks().tail;
    shared.is_taken();
    match log.commit(tail) {
        Err(CommitError::Poisoned(error)) => assert_stale(&error),
        other => panic!("{other:?}"),
    }
    assert!(log.marks().durable < tail, "nothing is said to be on the device");
}
