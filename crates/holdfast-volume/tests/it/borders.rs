//! Another file system inside the home.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use holdfast_io::fake::FakeFiles;
use holdfast_io::real::RealFiles;
use holdfast_log::Log;
use holdfast_volume::{DirectVolume, Errno, Kind, NewNode, ROOT, Tree, changed_by_others};

use crate::world::{Below, IDENTITY, config, new_node, new_region};

const XDEV: Errno = Errno(18);

/// A tmpfs, which numbers its inodes anew, mounted for as long as this lives. `None` where mounting
/// is not allowed.
struct Mounted(PathBuf);

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

fn open(home: &Path, log: &FakeFiles) -> DirectVolume {
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
    let changed = changed_by_others(&files, &*direct.log, (1, 0)).expect("a sound home");
    assert_eq!(changed, [PathBuf::from("file"), PathBuf::from("link")]);
    direct.detach().expect("a sound home");
    assert!(home.join("file/inside").exists() && home.join("link/inside").exists());
}
