//! What a process has open goes on to a child that it forks, for reading.
//!
//! Only the thread of a test goes on in the child, which takes no lock but the allocator's.

use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::Forked;
use holdfast_io::real::{DirectoryLock, MadeDirectories, RealFiles};
use holdfast_io::{Change, Files, Kind, OpenFile, OpenHow, Opener};

const WRITE: OpenHow =
    OpenHow { write: true, create_mode: Some(0o600), exclusive: false, direct: false };

fn is_refused<T>(done: io::Result<T>) -> bool {
    done.is_err_and(|error| {
        error.kind() == io::ErrorKind::PermissionDenied && error.to_string().contains("forked")
    })
}

/// Files with one of eight bytes in them, and one directory.
fn made(root: &Path) -> (RealFiles, Arc<dyn OpenFile>) {
    let files = RealFiles::open(root).unwrap();
    let file = files.open(Path::new("file"), WRITE).unwrap();
    file.write_all_at(b"parent's", 0).unwrap();
    files.make_dir(Path::new("directory"), 0o700).unwrap();
    (files, file)
}

#[test]
fn a_child_changes_no_file_that_its_parent_has_opened() {
    let directory = tempfile::tempdir().unwrap();
    let (_, file) = made(directory.path());
    Forked::does(|| {
        assert!(is_refused(file.write_at(b"child's ", 0)));
        assert!(is_refused(file.write_all_at(b"child's ", 0)));
        assert!(is_refused(file.write_through_at(b"child's ", 0)));
        assert!(is_refused(file.set_len(0)));
        assert!(is_refused(file.reserve(0, 1 << 20)));
        assert!(is_refused(file.punch(0, 8)));
        assert!(is_refused(file.zero(0, 8)));
        assert!(is_refused(file.change(&Change { mode: Some(0), ..Change::default() })));
        // It would take the news of a failed write from its parent.
        assert!(is_refused(file.sync_data()));
        assert!(is_refused(file.sync()));
        let mut read = [0; 8];
        file.read_full_at(&mut read, 0).unwrap();
        assert_eq!(&read, b"parent's");
    });
    file.write_all_at(b"PARENT'S", 0).unwrap();
    assert_eq!(std::fs::read(directory.path().join("file")).unwrap(), b"PARENT'S");
}

#[test]
fn a_child_changes_no_name_below_a_directory_that_its_parent_has_opened() {
    let directory = tempfile::tempdir().unwrap();
    let (files, _) = made(directory.path());
    let (file, new, below) = (Path::new("file"), Path::new("new"), Path::new("directory"));
    let held = files.hold(file).unwrap();
    Forked::does(|| {
        assert!(is_refused(files.open(new, WRITE)));
        assert!(is_refused(files.open(file, OpenHow { create_mode: None, ..WRITE })));
        for kind in [Kind::File, Kind::Directory, Kind::Fifo] {
            assert!(is_refused(files.make(new, kind, 0o700, 0)));
        }
        assert!(is_refused(files.make_symlink(new, b"file")));
        assert!(is_refused(files.link(file, new)));
        assert!(is_refused(files.rename(file, new)));
        assert!(is_refused(files.exchange(file, below)));
        assert!(is_refused(files.remove_file(file)));
        assert!(is_refused(files.remove_dir(below)));
        assert!(is_refused(files.change(file, &Change { mode: Some(0), ..Change::default() })));
        assert!(is_refused(files.set_xattr(file, b"user.child", b"here")));
        assert!(is_refused(files.remove_xattr(file, b"user.child")));
        assert!(is_refused(files.sync_dir(Path::new(""))));
        assert!(is_refused(files.sync_all()));
        assert!(is_refused(held.open(true)));
        assert!(is_refused(held.hand_no_project_down()));
        assert_eq!(files.read_dir(Path::new("")).unwrap().len(), 2);
        assert!(held.open(false).is_ok() && files.open(file, OpenHow::default()).is_ok());
    });
    files.rename(file, new).unwrap();
    assert_eq!(files.metadata(new).unwrap().mode, 0o600);
}

#[test]
fn what_a_child_opens_is_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let (_, file) = made(directory.path());
    Forked::does(|| {
        let files = RealFiles::open(directory.path()).unwrap();
        files.open(Path::new("file"), WRITE).unwrap().write_all_at(b"child's ", 0).unwrap();
        let again = files.open(Path::new("new"), WRITE).unwrap();
        // And so on.
        Forked::does(|| assert!(is_refused(again.write_at(b"grandchild's", 0))));
        assert!(is_refused(file.write_at(b"x", 0)));
    });
    assert_eq!(std::fs::read(directory.path().join("file")).unwrap(), b"child's ");
}

#[test]
fn every_process_is_another_opener_than_its_forebears_and_the_same_as_itself() {
    let first = Opener::this_process();
    assert!(first.is_here() && first == Opener::this_process());
    Forked::does(|| {
        assert!(!first.is_here());
        let second = Opener::this_process();
        assert!(second.is_here() && !first.is_here());
        Forked::does(|| {
            assert!(!first.is_here() && !second.is_here());
            assert!(Opener::this_process().is_here());
        });
    });
    assert!(first.is_here());
}

#[test]
fn a_child_lets_go_of_neither_the_lock_nor_the_new_directories_of_its_parent() {
    let directory = tempfile::tempdir().unwrap();
    let (made, new) = (MadeDirectories::default(), directory.path().join("new"));
    made.make(&new).unwrap();
    let lock = std::cell::RefCell::new(Some((DirectoryLock::take(&new).unwrap().unwrap(), made)));
    Forked::does(|| drop(lock.take()));
    assert!(new.exists());
    assert!(DirectoryLock::take(&new).unwrap().is_none());
    drop(lock.into_inner());
    assert!(!new.exists());
}

#[test]
fn a_child_joins_no_thread_of_its_parent() {
    let opener = Opener::this_process();
    let thread = std::thread::spawn(std::thread::park);
    let thread = std::cell::RefCell::new(Some(thread));
    Forked::does(|| opener.join(thread.take().unwrap()));
    let thread = thread.into_inner().unwrap();
    thread.thread().unpark();
    opener.join(thread);
}
