//! What only a real file system can show.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use holdfast_io::real::{RealClock, RealEntropy, RealFiles};
use holdfast_io::{Clock, Entropy, Files, Kind, OpenHow};

use super::create;

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

/// Whoever looks for what others changed goes by the time of the change.
#[test]
fn what_is_only_read_has_not_changed() {
    let (dir, files) = root();
    symlink("nowhere", dir.path().join("link")).unwrap();
    fs::write(dir.path().join("file"), "read").unwrap();
    fs::create_dir(dir.path().join("directory")).unwrap();
    let last_read = std::process::Command::new("touch")
        .args(["--no-dereference", "--date=2001-02-03", "link", "file", "directory"])
        .current_dir(dir.path())
        .status();
    assert!(last_read.unwrap().success());
    let changed = || {
        let of = |name: &str| files.metadata(Path::new(name)).unwrap().changed_ns;
        ["link", "file", "directory"].map(of)
    };
    let before = changed();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(files.hold(Path::new("link")).unwrap().read_link().unwrap(), b"nowhere");
    assert_eq!(files.read_link(Path::new("link")).unwrap(), b"nowhere");
    files.open(Path::new("file"), OpenHow::default()).unwrap().read_at(&mut [0; 4], 0).unwrap();
    files.read_dir(Path::new("directory")).unwrap();
    assert_eq!(changed(), before);
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

/// A directory of its own that a tmpfs is mounted on for as long as this lives. `None` where
/// mounting is not allowed.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn on(path: &Path) -> Option<Mounted> {
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "holdfast-test"])
            .arg(path)
            .output();
        mount.is_ok_and(|done| done.status.success()).then(|| Mounted(path.to_path_buf()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{:?} stays mounted", self.0);
    }
}

/// What is mounted below a root numbers its inodes as it likes: nothing there is the root's.
#[test]
fn another_file_system_below_the_root_is_not_entered() {
    let (folder, files) = root();
    let (mode, xdev) = (0o700, Some(18));
    files.make_dir(Path::new("m"), mode).unwrap();
    files.make_dir(Path::new("m/covered"), mode).unwrap();
    create(&files, "f");
    let Some(_mounted) = Mounted::on(&folder.path().join("m")) else { return };
    std::fs::write(folder.path().join("m/g"), b"other").unwrap();
    let (m, g) = (Path::new("m"), Path::new("m/g"));
    let write = OpenHow { write: true, ..OpenHow::default() };
    let change = holdfast_io::Change { mode: Some(0), uid: Some(5), ..Default::default() };
    let answers = [
        files.metadata(m).map(drop),
        files.metadata(g).map(drop),
        files.read_dir(m).map(drop),
        files.open(g, write).map(drop),
        files.make_dir(Path::new("m/d"), mode),
        files.link(Path::new("f"), Path::new("m/f")),
        files.rename(Path::new("f"), Path::new("m/f")),
        files.rename(g, Path::new("g")),
        files.remove_file(g),
        files.change(m, &change),
        files.change(g, &change),
        files.sync_dir(m),
    ];
    for answer in answers {
        assert_eq!(answer.unwrap_err().raw_os_error(), xdev);
    }
    assert_eq!(std::fs::read(folder.path().join("m/g")).unwrap(), b"other");
}

/// Each call takes 4,095 bytes, and names can lie deeper than that.
#[test]
fn a_path_may_be_longer_than_one_call_takes() {
    let (_folder, files) = root();
    let mut path = std::path::PathBuf::new();
    for _ in 0..60 {
        path.push("d".repeat(200));
        files.make_dir(&path, 0o700).unwrap();
    }
    let file = path.join("f");
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    files.open(&file, how).unwrap().write_all_at(b"deep", 0).unwrap();
    files.rename(&file, &path.join("g")).unwrap();
    files.link(&path.join("g"), Path::new("near")).unwrap();
    assert_eq!(files.metadata(&path.join("g")).unwrap().links, 2);
    assert_eq!(files.metadata(Path::new("near")).unwrap().size_bytes, 4);
    assert_eq!(files.read_dir(&path).unwrap().len(), 1);
    let name = Path::new(&"x".repeat(5000)).to_path_buf();
    assert_eq!(files.metadata(&name).unwrap_err().raw_os_error(), Some(36));
}

/// What is told as possible is possible, and one byte more is not; nothing is left behind.
#[test]
fn the_largest_size_that_is_told_is_one_that_a_file_can_have() {
    let (_folder, files) = root();
    let limits = files.limits().unwrap();
    assert!(files.read_dir(Path::new("")).unwrap().is_empty(), "a scratch file is left behind");
    assert!(limits.links_max >= 32_000);
    let file = create(&files, "f");
    file.set_len(limits.file_bytes_max).unwrap();
    if limits.file_bytes_max < i64::MAX as u64 {
        assert!(file.set_len(limits.file_bytes_max + 1).is_err());
    }
}

/// When a file or directory was read last is what programs say, not when Holdfast looked at it.
#[test]
fn reading_leaves_no_trace_in_the_times() {
    let (folder, files) = root();
    std::fs::create_dir(folder.path().join("d")).unwrap();
    std::fs::write(folder.path().join("d/f"), b"read").unwrap();
    let long_ago = Some(1_000_000_007);
    for path in ["d/f", "d", ""].map(Path::new) {
        let change = holdfast_io::Change { accessed_ns: long_ago, ..Default::default() };
        files.change(path, &change).unwrap();
    }
    for how in [OpenHow::default(), OpenHow { write: true, ..OpenHow::default() }] {
        let mut bytes = [0; 4];
        files.open(Path::new("d/f"), how).unwrap().read_full_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"read");
    }
    for path in ["d", ""].map(Path::new) {
        assert_eq!(files.read_dir(path).unwrap().len(), 1);
    }
    for path in ["d/f", "d", ""].map(Path::new) {
        assert_eq!(Some(files.metadata(path).unwrap().accessed_ns), long_ago, "{path:?}");
    }
}
