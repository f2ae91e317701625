//! What only a real file system can show.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;

use holdfast_io::real::{RealClock, RealEntropy, RealFiles};
use holdfast_io::{Clock, Entropy, Files, Kind, OpenHow};

fn root() -> (tempfile::TempDir, RealFiles) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let files = RealFiles::open(dir.path()).expect("the directory just made");
    (dir, files)
}

const CREATE: OpenHow =
    OpenHow { write: true, create_mode: Some(0o666), exclusive: false, direct: false };

#[test]
fn modes_are_exact_whatever_the_umask_is() {
    let (_dir, files) = root();
    files.make_dir(Path::new("d"), 0o1777).unwrap();
    files.make_node(Path::new("p"), Kind::Fifo, 0o666, 0).unwrap();
    drop(files.open(Path::new("f"), CREATE).unwrap());
    assert_eq!(files.metadata(Path::new("d")).unwrap().mode, 0o1777);
    assert_eq!(files.metadata(Path::new("p")).unwrap().mode, 0o666);
    assert_eq!(files.metadata(Path::new("f")).unwrap().mode, 0o666);
}

#[test]
fn a_device_keeps_its_number() {
    let (_dir, files) = root();
    match files.make_node(Path::new("null"), Kind::CharDevice, 0o666, 0x103) {
        Ok(()) => {
            let metadata = files.metadata(Path::new("null")).unwrap();
            assert_eq!((metadata.kind, metadata.rdev), (Kind::CharDevice, 0x103));
        }
        // Only a privileged user may make one.
        Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
    }
}

#[test]
fn no_path_leads_out_of_the_root() {
    let (dir, files) = root();
    symlink("/etc", dir.path().join("way")).unwrap();
    symlink("/etc/passwd", dir.path().join("file")).unwrap();
    for path in ["..", "../x", "/etc", "way/../passwd", "./x", "a//b", "a/"] {
        let error = files.metadata(Path::new(path)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path}");
    }
    for path in ["way/passwd", "way/new"] {
        assert!(files.metadata(Path::new(path)).is_err(), "{path}");
        assert!(files.open(Path::new(path), CREATE).is_err(), "{path}");
        assert!(files.remove_file(Path::new(path)).is_err(), "{path}");
        assert!(files.make_dir(Path::new(path), 0o700).is_err(), "{path}");
    }
    assert!(files.open(Path::new("file"), OpenHow::default()).is_err());
    assert!(files.read_dir(Path::new("way")).is_err());
    assert!(files.sync_dir(Path::new("way")).is_err());
}

#[test]
fn only_ordinary_files_are_opened_and_a_pipe_does_not_hang() {
    let (_dir, files) = root();
    files.make_node(Path::new("p"), Kind::Fifo, 0o600, 0).unwrap();
    files.make_dir(Path::new("d"), 0o700).unwrap();
    for write in [false, true] {
        let how = OpenHow { write, ..OpenHow::default() };
        assert!(files.open(Path::new("p"), how).is_err());
        assert!(files.open(Path::new("d"), how).is_err());
    }
}

#[test]
fn the_root_is_held_by_descriptor_not_by_name() {
    let (dir, files) = root();
    let moved = dir.path().with_extension("moved");
    fs::rename(dir.path(), &moved).unwrap();
    fs::create_dir(dir.path()).unwrap();
    drop(files.open(Path::new("f"), CREATE).unwrap());
    assert!(moved.join("f").exists());
    assert!(!dir.path().join("f").exists());
    fs::remove_dir_all(&moved).unwrap();
}

#[test]
fn a_directory_of_many_names_is_listed_whole() {
    let (dir, files) = root();
    for number in 0..5000 {
        fs::write(dir.path().join(format!("name-{number}")), b"").unwrap();
    }
    let mut names: Vec<_> = files.read_dir(Path::new("")).unwrap();
    names.sort_by(|one, other| one.name.cmp(&other.name));
    names.dedup();
    assert_eq!(names.len(), 5000);
    assert!(names.iter().all(|entry| entry.kind == Kind::File && entry.inode != 0));
}

#[test]
fn the_clock_moves_on_and_the_entropy_does_not_repeat() {
    let clock = RealClock;
    let before = clock.monotonic_ns();
    assert!(clock.monotonic_ns() >= before);
    assert!(clock.utc_ns() > 1_600_000_000_000_000_000);
    let (mut one, mut other) = ([0; 600], [0; 600]);
    RealEntropy.fill(&mut one);
    RealEntropy.fill(&mut other);
    assert_ne!(one, other);
}
