//! Another file system inside the home.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use holdfast_io::fake::FakeFiles;
use holdfast_io::real::RealFiles;
use holdfast_io::tree::{Errno, Kind, NewNode, ROOT, RenameHow, Tree};
use holdfast_log::Log;
use holdfast_volume::{DirectVolume, Told, changed_by_others};

use crate::world::{Below, IDENTITY, config, new_node, new_region};

const XDEV: Errno = Errno(18);

/// A tmpfs, which numbers its inodes anew, mounted for as long as this lives. `None` where mounting
/// is not allowed.
pub(crate) struct Mounted(pub(crate) PathBuf);

impl Mounted {
    fn on(path: &Path) -> Option<Mounted> {
        let mount = Command::new("mount").args(["-t", "tmpfs", "holdfast-test"]).arg(path).output();
        mount.is_ok_and(|done| done.status.success()).then(|| Mounted(path.to_path_buf()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{:?} stays mounted", self.0);
    }
}

pub(crate) fn open(home: &Path, log: &FakeFiles) -> DirectVolume {
    let files = Arc::new(RealFiles::open(home).expect("a directory made here"));
    let clock = Arc::new(holdfast_io::fake::FakeClock::default());
    let log = Below::new(log, "log");
    DirectVolume::open(files, log, new_region(), clock, config()).expect("a new volume")
}

pub(crate) fn new_log(seed: u64) -> FakeFiles {
    use holdfast_io::Files;
    let files = FakeFiles::new(seed);
    files.make_dir("log".as_ref(), 0o700).expect("a new disk");
    Log::create(&*Below::new(&files, "log"), IDENTITY, &config().log).expect("a new log");
    files
}

/// Files of equal numbers on both file systems, ours and the one below `m`.
fn fill(folder: &Path, what: &str) {
    for number in 0..10 {
        fs::write(folder.join(format!("{what}{number}")), what.repeat(100)).expect("room");
    }
}

fn everything_is_as_it_was(home: &Path, folder: &Path) {
    for number in 0..10 {
        for (folder, what) in [(home, "f"), (folder, "g")] {
            let found = fs::read_to_string(folder.join(format!("{what}{number}"))).expect("there");
            assert_eq!(found, what.repeat(100), "{what}{number} was overwritten");
        }
    }
}

#[test]
fn what_is_mounted_inside_the_home_is_neither_read_nor_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_home) = Mounted::on(folder.path()) else { return };
    let inner = folder.path().join("m");
    fs::create_dir(&inner).expect("room");
    let _inner = Mounted::on(&inner).expect("it was allowed just before");
    fill(folder.path(), "f");
    fill(&inner, "g");
    let direct = open(folder.path(), &new_log(1));
    let tree = &direct.volume;
    for number in 0..10 {
        tree.lookup(ROOT, format!("f{number}").as_bytes()).expect("a file of the home");
    }
    assert_eq!(tree.lookup(ROOT, b"m").map(drop), Err(XDEV));
    direct.detach().expect("a sound home");
    everything_is_as_it_was(folder.path(), &inner);
}

#[test]
fn what_is_mounted_later_is_not_written_either_and_the_home_goes_on_without_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_home) = Mounted::on(folder.path()) else { return };
    let inner = folder.path().join("m");
    fs::create_dir(&inner).expect("room");
    let direct = open(folder.path(), &new_log(1));
    let tree = &direct.volume;
    let directory = tree.lookup(ROOT, b"m").expect("a directory").node;
    let new = new_node(Kind::File, 0o600);
    let made = tree.make(directory, b"g3", &new).expect("a free name").node;
    let mounted = Mounted::on(&inner).expect("it was allowed just before");
    fill(folder.path(), "f");
    fill(&inner, "g");
    tree.write(made, b"ours", 0, false).expect("it is in the log alone");
    direct.log.drain().expect("a sound log");
    let cleaned = tree.clean_step().expect_err("the directory is covered").to_string();
    assert!(cleaned.contains("os error 18"), "{cleaned}");
    everything_is_as_it_was(folder.path(), &inner);
    drop(mounted);
    direct.detach().expect("nothing is in the way any more");
    assert_eq!(fs::read(inner.join("g3")).expect("came home"), b"ours");
}

const NEW: NewNode<'_> = new_node(Kind::File, 0o600);

/// A path of the log means what it will lead to; on the way there the home may have anything.
#[test]
fn what_stands_where_the_log_makes_a_directory_is_nobody_elses_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    fs::write(home.join("file"), "x").expect("room");
    std::os::unix::fs::symlink("file", home.join("link")).expect("room");
    let direct = open(home, &new_log(1));
    let tree = &direct.volume;
    for name in [&b"file"[..], b"link"] {
        tree.remove_file(ROOT, name).expect("it is there");
        let directory = NewNode { kind: Kind::Directory, mode: 0o700, ..NEW };
        let made = tree.make(ROOT, name, &directory).expect("a free name").node;
        tree.make(made, b"inside", &NEW).expect("a free name");
    }
    let files = RealFiles::open(home).expect("it is there");
    let told = Told { alone_since_ns: 1, accepted_ns: 0, now_ns: i64::MAX };
    let changed = changed_by_others(&files, &*direct.log, told).expect("a sound home");
    assert_eq!(changed, [PathBuf::from("file"), PathBuf::from("link")]);
    // All of that is ahead of such a clock, which therefore tells nothing.
    let behind = Told { now_ns: 1_000_000_000, ..told };
    let changed = changed_by_others(&files, &*direct.log, behind).expect("a sound home");
    assert!(changed.is_empty(), "{changed:?}");
    direct.detach().expect("a sound home");
    assert!(home.join("file/inside").exists() && home.join("link/inside").exists());
}

/// There a file gets another number, and another device, when it is first changed.
#[test]
fn files_of_the_lower_layer_of_an_overlay_are_read_changed_and_moved() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(at(name)).expect("a free name");
    }
    let Some(_lower) = Mounted::on(&at("lower")) else {
        println!("nothing can be mounted here");
        return;
    };
    fs::write(at("lower/f"), "below").expect("room");
    let layers = ["lower", "upper", "work"].map(|name| at(name).display().to_string());
    let options = format!("lowerdir={},upperdir={},workdir={}", layers[0], layers[1], layers[2]);
    let mut mount = Command::new("mount");
    mount.args(["-t", "overlay", "holdfast-test", "-o", &options]).arg(at("merged"));
    if !mount.output().is_ok_and(|done| done.status.success()) {
        println!("there are no overlays here");
        return;
    }
    let _merged = Mounted(at("merged"));
    let opened = open(&at("merged"), &new_log(3));
    let volume = &opened.volume;
    let settle = || {
        opened.log.commit(opened.log.marks().tail).expect("a sound log");
        while !volume.clean_step().expect("a sound home").is_idle() {}
    };
    let node = volume.lookup(ROOT, b"f").expect("it is there").node;
    let mut bytes = [0; 5];
    assert_eq!(volume.read(node, &mut bytes, 0), Ok(5));
    for step in *b"bmnBMN" {
        volume.write(node, &[step], 0, false).expect("room");
        settle();
        assert_eq!((volume.read(node, &mut bytes, 0), bytes[0]), (Ok(5), step));
    }
    volume.rename((ROOT, b"f"), (ROOT, b"g"), RenameHow::Replace).expect("it is free");
    settle();
    volume.write(node, b"w", 4, false).expect("room");
    settle();
    opened.detach().expect("a sound home");
    assert_eq!(fs::read_to_string(at("merged/g")).expect("it is there"), "Nelow");
}
