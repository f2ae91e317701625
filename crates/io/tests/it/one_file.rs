//! A root with one file in it: what it shows, and what it refuses.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use holdfast_io::fake::{Effect, FakeFiles, Fault, Operation, is_power_cut};
use holdfast_io::real::{RealFiles, file_from_fd};
use holdfast_io::{Change, Files, Kind, OneFile, OpenHow};

use super::{contents, create};

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EEXIST: i32 = 17;
const ENOTDIR: i32 = 20;
const EISDIR: i32 = 21;
const EINVAL: i32 = 22;

fn number<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

/// The same file, of a fake and of a real machine, each as the one file of a root.
fn both(check: impl Fn(&dyn Files, &OneFile)) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let real = RealFiles::open(dir.path()).expect("the directory just made");
    for below in [&real as &dyn Files, &FakeFiles::new(0)] {
        below.make_dir(Path::new("d"), 0o755).unwrap();
        create(below, "d/image").write_all_at(b"what was there", 0).unwrap();
        check(below, &OneFile::open(below, Path::new("d/image")).unwrap());
    }
}

#[test]
fn the_file_is_all_there_is_and_has_one_name() {
    both(|below, one| {
        let root = one.metadata(Path::new("")).unwrap();
        let file = one.metadata(Path::new("disk")).unwrap();
        assert_eq!((root.kind, root.mode, file.size_bytes), (Kind::Directory, 0o755, 14));
        assert_eq!(file, below.metadata(Path::new("d/image")).unwrap());
        assert_ne!(root.inode, file.inode);
        let listed = one.read_dir(Path::new("")).unwrap();
        let listed: Vec<_> = listed.iter().map(|entry| (&*entry.name, entry.inode)).collect();
        assert_eq!(listed, [(b"disk".as_slice(), file.inode)]);
        assert_eq!(contents(one, "disk").unwrap(), b"what was there");
        one.sync_dir(Path::new("")).unwrap();
        assert_eq!(one.space().unwrap().total_bytes, below.space().unwrap().total_bytes);
    });
}

#[test]
fn what_is_written_to_it_is_written_below() {
    both(|below, one| {
        let file = one.open(Path::new("disk"), OpenHow::default()).unwrap();
        file.write_all_at(b"IS", 9).unwrap();
        file.set_len(12).unwrap();
        one.change(Path::new("disk"), &Change { mode: Some(0o600), ..Change::default() }).unwrap();
        assert_eq!(contents(below, "d/image").unwrap(), b"what was ISe"[..12]);
        assert_eq!(below.metadata(Path::new("d/image")).unwrap().mode, 0o600);
    });
}

#[test]
fn a_path_that_comes_to_mean_another_file_changes_nothing() {
    both(|below, one| {
        below.rename(Path::new("d/image"), Path::new("d/moved")).unwrap();
        create(below, "d/image").write_all_at(b"another", 0).unwrap();
        assert_eq!(contents(one, "disk").unwrap(), b"what was there");
    });
}

#[test]
fn no_name_comes_or_goes() {
    both(|below, one| {
        let (disk, new) = (Path::new("disk"), Path::new("new"));
        let refused = [
            number(one.make_dir(new, 0o700)),
            number(one.make_symlink(new, b"disk")),
            number(one.make_node(new, Kind::File, 0o600, 0)),
            number(one.link(disk, new)),
            number(one.rename(disk, new)),
            number(one.exchange(disk, new)),
            number(one.remove_file(disk)),
            number(one.remove_dir(new)),
            number(one.open(new, super::CREATE)),
            number(one.change(Path::new(""), &Change::default())),
        ];
        assert_eq!(refused, [Some(EPERM); 10]);
        assert_eq!(contents(below, "d/image").unwrap(), b"what was there");
    });
}

#[test]
fn what_is_not_there_is_told_as_a_file_system_tells_it() {
    both(|_, one| {
        let open = |path: &str, how| number(one.open(Path::new(path), how));
        assert_eq!(open("other", OpenHow::default()), Some(ENOENT));
        assert_eq!(open("diskette", OpenHow::default()), Some(ENOENT));
        assert_eq!(open("disk/below", OpenHow::default()), Some(ENOTDIR));
        assert_eq!(open("", OpenHow::default()), Some(EISDIR));
        assert_eq!(open("../disk", OpenHow::default()), Some(EINVAL));
        assert_eq!(open("disk", OpenHow { exclusive: true, ..super::CREATE }), Some(EEXIST));
        assert_eq!(open("disk", super::CREATE), None);
        assert_eq!(number(one.read_dir(Path::new(".holdfast"))), Some(ENOENT));
        assert_eq!(number(one.read_dir(Path::new("disk"))), Some(ENOTDIR));
        assert_eq!(number(one.read_link(Path::new("disk"))), Some(EINVAL));
    });
}

#[test]
fn faults_and_power_cuts_of_the_machine_below_strike_it() {
    let files = FakeFiles::new(0);
    create(&files, "image");
    let one = OneFile::open(&files, Path::new("image")).unwrap();
    let file = one.open(Path::new("disk"), OpenHow::default()).unwrap();
    files.fail(Fault { operation: Operation::Write, skip: 0, effect: Effect::Errno(5) });
    assert_eq!(number(file.write_at(b"x", 0)), Some(5));
    files.fail(Fault { operation: Operation::Space, skip: 0, effect: Effect::Errno(5) });
    assert_eq!(number(one.space()), Some(5));
    files.cut_power_at(files.operations() + 1);
    assert!(is_power_cut(&file.sync_data().unwrap_err()));
}

fn opened(path: &Path) -> OwnedFd {
    fs::File::options().read(true).write(true).open(path).expect("a device just made").into()
}

/// A loop device over a file; it goes when this is dropped.
struct Loop(String);

impl Loop {
    /// None for who may not have one.
    fn over(image: &Path) -> Option<Loop> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(image).output().ok()?;
        let path = String::from_utf8(made.stdout).ok()?.trim_end().to_owned();
        made.status.success().then_some(Loop(path))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_block_device_is_a_file_of_its_size_that_cannot_be_resized() {
    const BYTES: usize = 3 << 20;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let image = dir.path().join("image");
    fs::write(&image, vec![7; BYTES]).unwrap();
    // Only a privileged user may have a loop device.
    let Some(device) = Loop::over(&image) else { return };
    let one = OneFile::new(file_from_fd(opened(Path::new(&device.0))).unwrap());
    let found = one.metadata(Path::new("disk")).unwrap();
    assert_eq!((found.kind, found.size_bytes), (Kind::File, BYTES as u64));
    assert!(found.rdev != 0 && found.allocated_bytes == found.size_bytes);
    let file = one.open(Path::new("disk"), OpenHow::default()).unwrap();
    assert_eq!(number(file.set_len(BYTES as u64 + 512)), Some(EINVAL));
    assert_eq!(number(file.set_len(512)), Some(EINVAL));
    file.set_len(BYTES as u64).unwrap();
    file.reserve(0, BYTES as u64).unwrap();
    // Borders of every kind: within one sector, across sectors, whole ones.
    let mut expected = vec![7; BYTES];
    for (offset, bytes) in [(100, 50), (1000, 3000), (8192, 8192), (100_001, 2 << 20)] {
        file.punch(offset as u64, bytes as u64).unwrap();
        expected[offset..offset + bytes].fill(0);
    }
    file.write_all_at(b"written", 5000).unwrap();
    expected[5000..5007].copy_from_slice(b"written");
    file.sync_data().unwrap();
    assert!(contents(&one, "disk").unwrap() == expected);
    drop((file, one, device));
    assert!(fs::read(&image).unwrap() == expected, "the device did not keep it");
}

#[test]
fn a_descriptor_of_neither_file_nor_device_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let directory: OwnedFd = fs::File::open(dir.path()).unwrap().into();
    assert_eq!(number(file_from_fd(directory)), Some(EISDIR));
    let null: OwnedFd = fs::File::open("/dev/null").unwrap().into();
    assert_eq!(number(file_from_fd(null)), Some(EINVAL));
}
