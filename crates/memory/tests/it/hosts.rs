//! Regions on memory that several hosts have. The other host is a copy of the region, attached as
//! hosts attach, whose first pages are put back: no lock of this system's stands between the two.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use holdfast_memory::{AttachError, Marks, Medium, Region};
use tempfile::TempDir;

use crate::common::{append, create, path_of, shm, spec};

/// Superblock and control page.
const HEAD_BYTES: usize = 8192;

fn pmem() -> (TempDir, Medium) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("region");
    (folder, Medium::Pmem { path })
}

/// What another host does that attaches the region as `attach` says.
fn elsewhere(medium: &Medium, attach: impl Fn(&Medium)) {
    let copy = path_of(medium).with_extension("copy");
    fs::copy(path_of(medium), &copy).unwrap();
    let other = match medium {
        Medium::Pmem { .. } => Medium::Pmem { path: copy.clone() },
        _ => Medium::Shm { path: copy.clone() },
    };
    attach(&other);
    put_back(&copy, &path_of(medium));
}

fn put_back(from: &Path, into: &Path) {
    let head = fs::read(from).unwrap();
    OpenOptions::new()
        .write(true)
        .open(into)
        .unwrap()
        .write_all_at(&head[..HEAD_BYTES], 0)
        .unwrap();
}

#[test]
fn an_attachment_is_current_until_another_host_attaches() {
    let (_folder, medium) = pmem();
    let region = create(&medium);
    assert!(append(&region, 300) && region.is_current());
    elsewhere(&medium, |it| drop(Region::attach(it).unwrap()));
    assert!(!region.is_current());
    drop(region);
    let region = Region::attach(&medium).unwrap();
    assert!(region.is_current());
    assert_eq!(region.marks(), Marks { released: 0, durable: 0, tail: 300 });
}

/// There the kernel's lock is enough, and no append looks.
#[test]
fn memory_that_no_other_host_can_have_is_always_current() {
    let (_folder, medium) = shm();
    let region = create(&medium);
    elsewhere(&medium, |it| drop(Region::attach(it).unwrap()));
    assert!(region.is_current());
    assert!(create(&Medium::Private).is_current());
}

#[test]
fn nobody_attaches_in_an_older_term_than_the_last() {
    let (_folder, medium) = pmem();
    drop(create(&medium));
    for term in [1, 3, 3] {
        drop(Region::attach_in_term(&medium, term).unwrap());
    }
    let refused = Region::attach_in_term(&medium, 2);
    assert!(matches!(refused, Err(AttachError::NewerTerm { found: 3 })), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("stale term"));
    assert_eq!(Region::attach(&medium).unwrap().generation(), 5, "the refused one left no trace");
}

#[test]
fn a_host_that_is_refused_does_not_end_the_one_that_serves() {
    let (_folder, medium) = pmem();
    drop(create(&medium));
    let region = Region::attach_in_term(&medium, 2).unwrap();
    elsewhere(&medium, |it| {
        assert!(matches!(Region::attach_in_term(it, 1), Err(AttachError::NewerTerm { found: 2 })));
    });
    assert!(region.is_current());
}

#[test]
fn the_term_of_a_new_region_is_noted_by_its_maker() {
    let (_folder, medium) = pmem();
    assert_eq!(create(&medium).note_term(7), 0);
    let refused = Region::attach_in_term(&medium, 6);
    assert!(matches!(refused, Err(AttachError::NewerTerm { found: 7 })), "{refused:?}");
}

#[test]
fn a_host_that_slept_in_an_append_publishes_nothing_and_leaves_the_lock_alone() {
    let (_folder, medium) = pmem();
    let region = create(&medium);
    assert!(append(&region, 300));
    let mut guard = region.lock();
    guard.reserve(100).unwrap().fill(1);
    elsewhere(&medium, |it| {
        let other = Region::attach(it).unwrap();
        assert!(append(&other, 50));
        std::mem::forget(other.lock());
    });
    let before = fs::read(path_of(&medium)).unwrap();
    guard.publish(100);
    drop(guard);
    assert!(before == fs::read(path_of(&medium)).unwrap(), "the region is the other host's");
    assert_eq!(region.marks().tail, 350);
}

#[test]
fn a_device_that_everybody_may_write_is_refused_and_named_so() {
    let medium = Medium::Pmem { path: "/dev/null".into() };
    for said in [
        Region::attach(&medium).unwrap_err().to_string(),
        Region::create(&medium, &spec()).unwrap_err().to_string(),
        Region::remove(&medium).unwrap_err().to_string(),
    ] {
        assert!(said.contains("everybody may write it"), "{said}");
    }
}
