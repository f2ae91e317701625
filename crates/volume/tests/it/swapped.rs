//! Somebody swaps files in the bare home while a volume serves it, by a descriptor that he had from
//! before. He gets nothing done to a file that is not his.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use holdfast_io::fake::Random;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_io::tree::{Errno, NewNode, NodeId, ROOT, RenameHow, SetAttributes, SetXattr, Tree};
use holdfast_io::{Change, Files, Held, Kind, OpenHow};
use holdfast_log::Log;
use holdfast_memory::Region;
use holdfast_volume::{DirectVolume, DirectoryVolume, order_to_put_aside};

use crate::seeds::for_each_seed;
use crate::world::{Below, IDENTITY, ONCE, Opened, World, config, new_node, new_region};

/// Who swaps, and works on the volume.
const USER: u32 = 1000;
/// Whose file must stay as it is.
const OWNER: u32 = 7;
const SECRET: &str = "secret";
const SECRET_BYTES: &[u8] = b"what nobody else may read or change";
const MARK: (&[u8], &[u8]) = (b"user.mark", b"of the owner");
const NAMES: u64 = 5;

/// Everything that there is of the owner's file.
#[derive(Debug, PartialEq)]
struct Secret {
    bytes: Vec<u8>,
    mode: u32,
    owner: (u32, u32),
    modified_ns: i128,
    xattrs: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

fn make_secret(home: &dyn Files) {
    let path = Path::new(SECRET);
    home.make_node(path, Kind::File, 0o600, 0).expect("a free name");
    let file = home.open(path, OpenHow { write: true, ..OpenHow::default() }).expect("just made");
    file.write_all_at(SECRET_BYTES, 0).expect("room");
    let owned = Change { uid: Some(OWNER), gid: Some(OWNER), ..Change::default() };
    home.change(path, &owned).expect("it can be given away");
    home.set_xattr(path, MARK.0, MARK.1).expect("it takes attributes");
}

fn secret_at(home: &dyn Files, path: &Path) -> Secret {
    secret_of(&*home.hold(path).expect("it is there"))
}

fn secret_of(held: &dyn Held) -> Secret {
    let found = held.metadata().expect("it is there");
    let mut bytes = vec![0; found.size_bytes as usize];
    held.open(false).expect("a file").read_full_at(&mut bytes, 0).expect("it can be read");
    let names = held.xattr_names().expect("it can tell");
    let value = |name: &Vec<u8>| held.xattr(name).expect("it can tell");
    Secret {
        bytes,
        mode: found.mode,
        owner: (found.uid, found.gid),
        modified_ns: found.modified_ns,
        xattrs: names.iter().map(|name| (name.clone(), value(name))).collect(),
    }
}

/// One who may write the directory that all of it is in, through the volume and beside it.
struct User {
    random: Random,
    /// Files of his that the kernel knows by number.
    nodes: Vec<NodeId>,
}

impl User {
    fn name(&mut self) -> String {
        format!("f{}", self.random.below(NAMES))
    }

    fn node(&mut self) -> Option<NodeId> {
        let nodes = self.nodes.len() as u64;
        (nodes > 0).then(|| self.nodes[self.random.below(nodes) as usize])
    }

    /// A file of his by its name, as the volume tells whose it is.
    fn find(&mut self, volume: &DirectoryVolume, name: &str) -> Result<NodeId, Errno> {
        let found = volume.lookup(ROOT, name.as_bytes())?;
        if found.uid != USER {
            return Err(Errno::PERM);
        }
        if !self.nodes.contains(&found.node) {
            self.nodes.push(found.node);
        }
        Ok(found.node)
    }

    fn make(&mut self, volume: &DirectoryVolume) -> Result<(), Errno> {
        let name = self.name();
        let new = NewNode { uid: USER, gid: USER, ..new_node(Kind::File, 0o666) };
        self.nodes.push(volume.make(ROOT, name.as_bytes(), &new)?.node);
        Ok(())
    }

    /// Changes names that stand for files of his.
    fn change_names(&mut self, volume: &DirectoryVolume) -> Result<(), Errno> {
        let (from, to) = (self.name(), self.name());
        let node = self.find(volume, &from)?;
        match self.random.below(4) {
            0 => volume.remove_file(ROOT, from.as_bytes()),
            1 => volume.link(node, ROOT, to.as_bytes()).map(drop),
            how => {
                // What is replaced, or moved, is his too.
                match self.find(volume, &to) {
                    Err(Errno::NOENT) => {}
                    found => drop(found?),
                }
                let how = if how == 2 { RenameHow::Replace } else { RenameHow::Exchange(ONCE) };
                volume.rename((ROOT, from.as_bytes()), (ROOT, to.as_bytes()), how)
            }
        }
    }

    /// Changes a file of his that he has open.
    fn change(&mut self, volume: &DirectoryVolume) -> Result<(), Errno> {
        let Some(node) = self.node() else { return Ok(()) };
        let (offset, bytes) = (self.random.below(9000), self.random.below(5000) as usize);
        match self.random.below(6) {
            0 => {
                let set = SetAttributes { size_bytes: Some(offset), ..SetAttributes::default() };
                volume.set_attributes(node, &set).map(drop)
            }
            1 => {
                let set = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
                volume.set_attributes(node, &set).map(drop)
            }
            2 => volume.set_xattr(node, b"user.mark", b"of another", &SetXattr::default()),
            3 => volume.remove_xattr(node, b"user.mark", ONCE),
            _ => volume.write(node, &vec![b'x'; bytes], offset, false),
        }
    }

    /// Looks into a file of his that he has open.
    fn look(&mut self, volume: &DirectoryVolume, told: &str) {
        let Some(node) = self.node() else { return };
        let mut bytes = [0; 64];
        if let Ok(got) = volume.read(node, &mut bytes, 0) {
            assert!(!bytes[..got].starts_with(b"what"), "{told}: a strange file was read");
        }
        if let Ok(mark) = volume.xattr(node, MARK.0) {
            assert_ne!(mark, MARK.1, "{told}: an attribute of a strange file was told");
        }
    }

    /// Changes names of the bare home.
    fn swap(&mut self, home: &dyn Files, at: &mut PathBuf) {
        let name = PathBuf::from(self.name());
        let done = match self.random.below(3) {
            0 => home.exchange(at, &name),
            1 => home.rename(at, &name),
            _ => {
                let other = PathBuf::from(self.name());
                if name != *at && other != *at {
                    drop(home.rename(&name, &other));
                }
                return;
            }
        };
        if done.is_ok() {
            *at = name;
        }
    }
}

fn reopen(world: &World, told: &str) -> Opened {
    for _ in 0..200 {
        match world.open() {
            Ok((volume, _)) => return volume,
            Err(error) => {
                let log = Below::new(&world.files, "log");
                let ordered = order_to_put_aside(&*log).expect("the log's disk is sound");
                assert!(ordered.is_some(), "{told}: nothing to put aside, and no volume: {error}");
            }
        }
    }
    panic!("{told}: the volume does not open, whatever is put aside")
}

fn live(seed: u64) {
    let world = World::new(seed);
    let home = world.home();
    make_secret(&*home);
    let before = secret_at(&*home, Path::new(SECRET));
    let mut at = PathBuf::from(SECRET);
    let mut user = User { random: Random::new(seed), nodes: Vec::new() };
    let mut volume = reopen(&world, "the first time");
    for step in 0..120 {
        let told = format!("seed {seed}, step {step}");
        let _ = match user.random.below(12) {
            0 | 1 => user.make(&volume),
            2 => user.change_names(&volume),
            3..6 => user.change(&volume),
            6 => {
                user.swap(&*home, &mut at);
                Ok(())
            }
            7 => {
                drop(volume);
                volume = reopen(&world, &told);
                Ok(())
            }
            8..10 => {
                let _ = volume.log().commit(volume.log().marks().tail);
                while volume.clean_step().is_ok_and(|cleaned| !cleaned.is_idle()) {}
                Ok(())
            }
            10 => {
                let _ = order_to_put_aside(&*Below::new(&world.files, "log"));
                Ok(())
            }
            _ => {
                user.look(&volume, &told);
                Ok(())
            }
        };
        assert_eq!(secret_at(&*home, &at), before, "{told}: somebody's file was changed");
    }
    let told = format!("seed {seed}, the end");
    for _ in 0..400 {
        if volume.detach().is_ok() {
            assert_eq!(secret_at(&*home, &at), before, "{told}: somebody's file was changed");
            return;
        }
        let ordered = order_to_put_aside(&*Below::new(&world.files, "log"));
        assert!(ordered.is_ok(), "{told}: nothing can be put aside");
    }
    panic!("{told}: what cannot be applied cannot be put aside");
}

#[test]
fn whatever_is_swapped_in_the_bare_home_no_other_file_is_read_or_changed() {
    for_each_seed("swapped::whatever_is_swapped", &[605, 880, 1423], 0..300, live);
}

/// A canary: without a swap, the same life is a life in which files are read and changed.
#[test]
fn without_a_swap_what_the_user_changes_comes_home() {
    let world = World::new(1);
    let mut user = User { random: Random::new(1), nodes: Vec::new() };
    let volume = reopen(&world, "the first time");
    for _ in 0..NAMES * 4 {
        let _ = user.make(&volume);
    }
    for _ in 0..50 {
        let changed = user.change(&volume);
        assert!(matches!(changed, Ok(()) | Err(Errno::NODATA)), "his own file: {changed:?}");
    }
    volume.detach().expect("a sound home");
    let names = (0..NAMES).map(|number| format!("f{number}"));
    let bytes = names.filter_map(|name| world.home().metadata(Path::new(&name)).ok());
    assert!(bytes.map(|found| found.size_bytes).sum::<u64>() > 0, "nothing came home");
}

/// Memory has nothing of what is below it then, which must not be taken for all that there is.
#[test]
fn another_directory_in_the_place_of_a_volumes_is_refused_by_name_until_that_is_back() {
    let world = World::new(1);
    let mut volume = reopen(&world, "the first time");
    let directory = volume.make(ROOT, b"d", &new_node(Kind::Directory, 0o755)).expect("room").node;
    let file = volume.make(directory, b"f", &new_node(Kind::File, 0o644)).expect("room").node;
    volume.log().commit(volume.log().marks().tail).expect("a sound disk");
    while volume.clean_step().is_ok_and(|cleaned| !cleaned.is_idle()) {}
    volume.write(file, b"acknowledged", 0, false).expect("room");
    drop(volume);
    let (home, [ours, aside]) = (world.home(), ["d", "aside"].map(Path::new));
    home.rename(ours, aside).expect("both are free to be named");
    home.make_node(ours, Kind::Directory, 0o755, 0).expect("a free name");
    let refused = world.open().err().expect("another directory is there").to_string();
    assert!(refused.contains("d/f") && refused.contains("put the right one back"), "{refused}");
    home.remove_dir(ours).expect("it is empty");
    home.rename(aside, ours).expect("a free name");
    volume = reopen(&world, "the right one is back");
    let mut bytes = [0; 12];
    assert_eq!(volume.read(file, &mut bytes, 0), Ok(12), "it is known by its number");
    assert_eq!(&bytes, b"acknowledged");
    volume.detach().expect("a sound home");
}

/// A home and a log on this machine.
struct Machine {
    folder: tempfile::TempDir,
    region: Arc<Region>,
}

impl Machine {
    fn new() -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        for below in ["home", "log"] {
            std::fs::create_dir(folder.path().join(below)).expect("a free name");
        }
        let machine = Machine { folder, region: new_region() };
        Log::create(&*machine.files("log"), IDENTITY, &config().log).expect("a new log");
        machine
    }

    fn files(&self, below: &str) -> Arc<dyn Files> {
        Arc::new(RealFiles::open(&self.folder.path().join(below)).expect("made above"))
    }

    /// Opens the volume, with whatever cannot be applied put aside.
    fn open(&self) -> DirectVolume {
        for _ in 0..2000 {
            let (home, log, clock) = (self.files("home"), self.files("log"), Arc::new(RealClock));
            match DirectVolume::open(home, log, self.region.clone(), clock, config()) {
                Ok(opened) => return opened,
                Err(_) => drop(order_to_put_aside(&*self.files("log"))),
            }
        }
        panic!("the volume does not open, whatever is put aside")
    }
}

/// Serves the volume to one who works on it, while the files below may be swapped.
fn serve(machine: &Machine, user: &mut User) {
    let opened = machine.open();
    let (volume, log, stop) = (&opened.volume, &opened.log, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| log.run_drainer(&stop));
        scope.spawn(|| log.run_preparer(&stop));
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if volume.clean_step().is_err() {
                    let _ = order_to_put_aside(&*machine.files("log"));
                }
            }
        });
        for _ in 0..500 {
            // So that it is not all done before a cleaner has come by.
            std::thread::sleep(Duration::from_micros(200));
            let _ = match user.random.below(8) {
                0 => user.make(volume),
                1 => user.change_names(volume),
                2 => {
                    user.look(volume, "while files are swapped");
                    Ok(())
                }
                _ => user.change(volume),
            };
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn who_swaps_files_without_end_has_no_other_file_read_or_changed() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0);
    if !is_root {
        println!("files can be given away by root alone");
        return;
    }
    for_each_seed("swapped::who_swaps", &[], 0..1, |seed| {
        let machine = Machine::new();
        // What somebody got hold of before the volume was attached.
        let home = machine.files("home");
        make_secret(&*home);
        let held = home.hold(Path::new(SECRET)).expect("just made");
        for number in 0..NAMES {
            let name = PathBuf::from(format!("f{number}"));
            home.make_node(&name, Kind::File, 0o666, 0).expect("a free name");
            let owned = Change { uid: Some(USER), gid: Some(USER), ..Change::default() };
            home.change(&name, &owned).expect("it can be given away");
        }
        let before = secret_of(&*held);
        let (stop, swapped) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stranger = User { random: Random::new(!seed), nodes: Vec::new() };
                let mut at = PathBuf::from(SECRET);
                while !stop.load(Ordering::Relaxed) {
                    let name = PathBuf::from(stranger.name());
                    if home.exchange(&at, &name).is_ok() {
                        at = name;
                        swapped.fetch_add(1, Ordering::Relaxed);
                    } else {
                        std::thread::yield_now();
                    }
                }
            });
            let mut user = User { random: Random::new(seed), nodes: Vec::new() };
            for _ in 0..3 {
                serve(&machine, &mut user);
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(swapped.load(Ordering::Relaxed) > 0, "nothing was ever swapped");
        assert_eq!(secret_of(&*held), before, "somebody's file was changed");
    });
}
