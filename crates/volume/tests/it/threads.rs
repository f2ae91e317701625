//! Real threads on real files and a small ring, so that back-pressure, draining, cleaning and the
//! recycling of segments all run hot at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use holdfast_io::fake::Random;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_io::tree::{NodeId, ROOT, RenameHow, SetAttributes, Tree};
use holdfast_io::{Files, Kind};
use holdfast_log::{Log, LogConfig};
use holdfast_memory::{Medium, Region, RegionSpec};
use holdfast_volume::{Class, DirectVolume, DirectoryVolume, VolumeConfig};

use crate::model::{image_of, image_through};
use crate::world::{IDENTITY, new_node};

const WRITERS: u64 = 4;
const STEPS: u64 = 2000;
const WATCHDOG: Duration = Duration::from_secs(600);

/// A directory that goes when the test ends.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("holdfast-{name}-{}", std::process::id()));
        for below in ["home", "log"] {
            std::fs::create_dir_all(path.join(below)).expect("a writable directory");
        }
        Scratch(path)
    }

    fn files(&self, below: &str) -> Arc<dyn Files> {
        Arc::new(RealFiles::open(&self.0.join(below)).expect("a directory made above"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn open(scratch: &Scratch) -> DirectVolume {
    let spec = RegionSpec { ring_bytes: 2 << 20, roster_bytes: 1 << 18, identity: IDENTITY };
    let region = Arc::new(Region::create(&Medium::Private, &spec).expect("a private region"));
    let log = LogConfig { dirty_bytes_max: 1 << 20, ..LogConfig::in_ring(2 << 20, 1 << 18, 3) };
    Log::create(&*scratch.files("log"), IDENTITY, &log).expect("an empty directory");
    let config = VolumeConfig { class: Class::Memory, log };
    let (home, log) = (scratch.files("home"), scratch.files("log"));
    let opened = DirectVolume::open(home, log, region, Arc::new(RealClock), config);
    opened.expect("a new volume")
}

/// What one writer has put where, by file name.
type Contents = BTreeMap<String, Vec<u8>>;

/// One program: its own files in its own and in a shared directory.
struct Writer<'a> {
    tree: &'a DirectoryVolume,
    number: u64,
    random: Random,
    shared: NodeId,
    files: Contents,
    opened: BTreeMap<String, NodeId>,
}

impl Writer<'_> {
    fn name(&mut self) -> String {
        format!("w{}-{}", self.number, self.random.below(12))
    }

    fn node(&self, name: &str) -> NodeId {
        self.tree.lookup(self.shared, name.as_bytes()).expect("a file of this writer").node
    }

    /// The kernel forgets the file, unless somebody has it open.
    fn forget(&self, node: NodeId) {
        if !self.opened.values().any(|other| *other == node) {
            self.tree.forget(node, u64::MAX);
        }
    }

    fn step(&mut self) {
        let name = self.name();
        let exists = self.files.contains_key(&name);
        match self.random.below(16) {
            _ if !exists => self.make(&name),
            0..=5 => self.write(&name),
            6 => self.cut(&name),
            7 => self.remove(&name),
            8 => self.rename(&name),
            9 => self.open_or_close(&name),
            _ => self.check(&name),
        }
    }

    fn make(&mut self, name: &str) {
        let new = new_node(Kind::File, 0o600);
        let made = self.tree.make(self.shared, name.as_bytes(), &new);
        made.expect("a free name");
        self.files.insert(name.to_owned(), Vec::new());
    }

    fn write(&mut self, name: &str) {
        let node = self.node(name);
        let bytes = self.files.get_mut(name).expect("checked to exist");
        let appends = self.random.chance(60) && bytes.len() < 60_000;
        let offset =
            if appends { bytes.len() } else { self.random.below(1 + bytes.len() as u64) as usize };
        let length = 1 + self.random.below(9000) as usize;
        let first = self.random.below(250) as u8;
        let data: Vec<u8> = (0..length).map(|index| first.wrapping_add(index as u8)).collect();
        bytes.resize(bytes.len().max(offset + length), 0);
        bytes[offset..offset + length].copy_from_slice(&data);
        self.tree.write(node, &data, offset as u64, false).expect("a sound disk");
    }

    fn cut(&mut self, name: &str) {
        let node = self.node(name);
        let size = self.random.below(30_000);
        self.files.get_mut(name).expect("checked to exist").resize(size as usize, 0);
        let set = SetAttributes { size_bytes: Some(size), ..SetAttributes::default() };
        self.tree.set_attributes(node, &set).expect("a sound disk");
        self.forget(node);
    }

    fn remove(&mut self, name: &str) {
        let node = self.node(name);
        self.tree.remove_file(self.shared, name.as_bytes()).expect("a file of this writer");
        let bytes = self.files.remove(name).expect("checked to exist");
        if let Some(open) = self.opened.remove(name) {
            assert_eq!(self.read(open), bytes, "{name}: removed while open");
        }
        self.forget(node);
    }

    fn rename(&mut self, name: &str) {
        let to = self.name();
        if to == name {
            return;
        }
        let replaced = self.files.contains_key(&to).then(|| self.node(&to));
        let (from, target) = ((self.shared, name.as_bytes()), (self.shared, to.as_bytes()));
        self.tree.rename(from, target, RenameHow::Replace).expect("a file of this writer");
        if let Some(open) = self.opened.remove(&to) {
            self.tree.closed(open);
        }
        if let Some(node) = replaced {
            self.forget(node);
        }
        if let Some(open) = self.opened.remove(name) {
            self.opened.insert(to.clone(), open);
        }
        let bytes = self.files.remove(name).expect("checked to exist");
        self.files.insert(to, bytes);
    }

    fn open_or_close(&mut self, name: &str) {
        match self.opened.remove(name) {
            Some(node) => self.tree.closed(node),
            None => {
                let node = self.node(name);
                self.tree.opened(node).expect("it has a name");
                self.opened.insert(name.to_owned(), node);
            }
        }
    }

    fn read(&self, node: NodeId) -> Vec<u8> {
        let size = self.tree.attributes(node).expect("a known node").size_bytes;
        let mut bytes = vec![0; usize::try_from(size).expect("small")];
        assert_eq!(self.tree.read(node, &mut bytes, 0), Ok(bytes.len()));
        bytes
    }

    fn check(&self, name: &str) {
        let node = self.node(name);
        let read = self.read(node);
        let told = &self.files[name];
        let differs = read.iter().zip(told).position(|(one, other)| one != other);
        assert!(
            read.len() == told.len() && differs.is_none(),
            "writer {}: {name} has {} bytes of {}, differs at {differs:?}",
            self.number,
            read.len(),
            told.len()
        );
        self.forget(node);
    }
}

/// Lists and reads what the others write: every answer must be possible.
fn look(tree: &DirectoryVolume, shared: NodeId, stop: &AtomicBool) {
    let mut bytes = vec![0; 100_000];
    while !stop.load(Ordering::Relaxed) {
        let mut names = Vec::new();
        let listed = tree.list(shared, 0, &mut |item| {
            names.push(item.name.to_vec());
            true
        });
        listed.expect("a directory");
        for name in names {
            // Gone meanwhile is a possible answer; a failure of the disk is not.
            if let Ok(found) = tree.lookup(shared, &name) {
                let read = tree.read(found.node, &mut bytes, 0);
                assert!(!matches!(read, Err(errno) if errno.0 == 5), "the disk is sound");
            }
        }
    }
}

/// Everybody else would wait for ever for a thread that panicked.
pub(crate) fn or_abort(work: impl FnOnce()) {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    outcome.unwrap_or_else(|_| std::process::abort());
}

/// All writers until they are done; what they left.
fn write_all(opened: &DirectVolume, seed: u64, progress: &AtomicU64) -> Vec<Contents> {
    let DirectVolume { volume, log, .. } = opened;
    let new = new_node(Kind::Directory, 0o755);
    let shared = volume.make(ROOT, b"shared", &new).expect("a free name").node;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| or_abort(|| log.run_drainer(&stop)));
        scope.spawn(|| or_abort(|| volume.run_cleaner(&stop)));
        scope.spawn(|| or_abort(|| log.run_preparer(&stop)));
        scope.spawn(|| or_abort(|| look(volume, shared, &stop)));
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                scope.spawn(move || {
                    let random = Random::new(seed * WRITERS + number);
                    let (files, opened) = (Contents::new(), BTreeMap::new());
                    let mut writer = Writer { tree: volume, number, random, shared, files, opened };
                    for _ in 0..STEPS {
                        writer.step();
                        progress.fetch_add(1, Ordering::Relaxed);
                    }
                    writer.files.keys().for_each(|name| writer.check(name));
                    writer.files
                })
            })
            .collect();
        let left: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        left.into_iter().map(|files| files.expect("a writer that found its files")).collect()
    })
}

/// Ends the process if the test does not: a deadlock must not look like a slow test.
pub(crate) fn watched(told: &str, progress: &Arc<AtomicU64>, work: impl FnOnce()) {
    let (done, ended) = mpsc::channel::<()>();
    let (told, progress) = (told.to_owned(), progress.clone());
    let watchdog = std::thread::spawn(move || {
        if ended.recv_timeout(WATCHDOG) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{told}: stuck after {} steps", progress.load(Ordering::Relaxed));
            std::process::abort();
        }
    });
    work();
    drop(done);
    watchdog.join().expect("the watchdog only waits");
}

#[test]
fn many_threads_on_a_small_ring_lose_and_mix_up_nothing() {
    crate::seeds::for_each_seed("threads", &[], 0..2, |seed| {
        let progress = Arc::new(AtomicU64::new(0));
        watched(&format!("seed {seed}"), &progress, || {
            let scratch = Scratch::new(&format!("threads-{seed}"));
            let opened = open(&scratch);
            let left = write_all(&opened, seed, &progress);
            let through = image_through(&opened.volume);
            opened.detach().expect("a sound disk");
            // Before anybody else reads there: that changes times of access.
            let home = image_of(&*scratch.files("home"));
            assert_eq!(home, through, "the home is not what was seen");
            let mut names = 0;
            for (name, bytes) in left.iter().flatten() {
                let path = scratch.0.join("home/shared").join(name);
                assert_eq!(&std::fs::read(&path).expect("a file left there"), bytes, "{name}");
                names += 1;
            }
            assert_eq!(home.len(), names + 1, "a file that nobody left there");
            let log = Path::new("log");
            let segments = std::fs::read_dir(scratch.0.join(log)).expect("a log").count();
            assert!(segments < 20, "segments are not recycled: {segments} files");
        });
    });
}
