//! Where files are worked with.
//!
//! Promise: all places lie on one disk; the volumes are what `holdfast` makes of a configuration
//! that says nothing but where things are.
//! Never: reaches into a volume's insides.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_bench_common::Failure;
use holdfast_bench_common::place::Place;
use rustix::mount::{UnmountFlags, unmount};
use serde_json::Value;

/// How long anything may take to come about.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the home lacks when a volume counts as clean: no more than marks.
const SETTLED_BYTES: u64 = 64 << 10;
/// The modelled disk, which is built beside `holdfast`.
const SLOW_DISK: &str = "holdfast-slowdisk";
/// A disk that turns so fast costs nothing: what is left is FUSE.
const FASTEST: &str = "4000000000";

/// One place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The file system below all others.
    Ext4,
    /// A FUSE file system that hands everything on, and a sync costs nothing.
    Bare,
    /// The same, but for a sync, which is handed on as well.
    Synced,
    /// bindfs: a FUSE file system that hands everything on, syncs too.
    Bindfs,
    /// A volume that acknowledges from memory.
    Memory,
    /// A volume that acknowledges from the disk.
    Disk,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] =
        [Kind::Ext4, Kind::Bare, Kind::Synced, Kind::Bindfs, Kind::Memory, Kind::Disk];
    /// What shows what FUSE costs.
    pub const FUSE_ALONE: [Kind; 3] = [Kind::Bare, Kind::Synced, Kind::Bindfs];
    /// The volumes.
    pub const VOLUMES: [Kind; 2] = [Kind::Memory, Kind::Disk];

    const MOUNTED: [Kind; 5] = [Kind::Bare, Kind::Synced, Kind::Bindfs, Kind::Memory, Kind::Disk];

    /// Its name in ids.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Bare => "bare",
            Kind::Synced => "synced",
            Kind::Bindfs => "bindfs",
            Kind::Memory => "memory",
            Kind::Disk => "disk",
        }
    }

    fn must_survive(self) -> &'static str {
        match self {
            Kind::Memory => "\"process\"",
            _ => "\"process\", \"os\", \"power\"",
        }
    }

    fn volume(self) -> String {
        format!("benchfiles-{}", self.name())
    }
}

/// All places, and the processes behind them.
pub struct Places {
    root: PathBuf,
    holdfast: PathBuf,
    /// The keeper, and the file systems that hand on.
    processes: Vec<Child>,
}

impl Places {
    /// Makes and mounts all of them.
    ///
    /// # Errors
    /// Without root, FUSE or the program.
    pub fn mount(place: &Place, holdfast: &Path) -> Result<Places, Failure> {
        let (root, holdfast) = (place.path().to_owned(), holdfast.to_owned());
        for kind in Kind::ALL {
            for part in ["home", "mount", "log"] {
                fs::create_dir_all(root.join(kind.name()).join(part))?;
            }
        }
        fs::write(root.join("files.toml"), configuration(&root))?;
        let mut bare = handing_on(&root, &holdfast, Kind::Bare);
        let mut synced = handing_on(&root, &holdfast, Kind::Synced);
        synced.arg("--sync-below");
        let mut bindfs = Command::new("bindfs");
        bindfs.args(["-f", "--multithreaded"]);
        bindfs.arg(root.join("bindfs/home")).arg(root.join("bindfs/mount"));
        let mut processes = vec![quietly(&mut bare, &root.join("bare.log"))?];
        processes.push(quietly(&mut synced, &root.join("synced.log"))?);
        processes.push(quietly(&mut bindfs, &root.join("bindfs.log"))?);
        for kind in Kind::VOLUMES {
            command(&root, &holdfast, &["volume", "make", &kind.volume()])?;
        }
        let mut serve = Command::new(&holdfast);
        serve.arg("--config").arg(root.join("files.toml")).arg("serve");
        processes.push(quietly(&mut serve, &root.join("keeper.log"))?);
        let places = Places { root, holdfast, processes };
        for kind in Kind::MOUNTED {
            until("mounting", || Ok(is_mounted(&places.path(kind))))?;
        }
        Ok(places)
    }

    /// Where programs work.
    #[must_use]
    pub fn path(&self, kind: Kind) -> PathBuf {
        let part = if kind == Kind::Ext4 { "home" } else { "mount" };
        self.root.join(kind.name()).join(part)
    }

    /// Where the file system below has it.
    #[must_use]
    pub fn home(&self, kind: Kind) -> PathBuf {
        self.root.join(kind.name()).join("home")
    }

    /// The folder of everything.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns when a place has nothing left to do for what was done there before.
    ///
    /// # Errors
    /// If it does not get done.
    pub fn settle(&self, kind: Kind) -> Result<(), Failure> {
        if Kind::VOLUMES.contains(&kind) {
            until("cleaning", || Ok(self.unapplied_bytes(kind)? <= SETTLED_BYTES))?;
        }
        Ok(rustix::fs::syncfs(File::open(&self.root)?)?)
    }

    fn unapplied_bytes(&self, kind: Kind) -> Result<u64, Failure> {
        // Its exit code says whether all is well, which it need not be under load.
        let said = with_configuration(&self.root, &self.holdfast, &["status", "--json"])?.stdout;
        let status: Value = serde_json::from_slice(&said)?;
        let volumes = status["volumes"].as_array().ok_or("a status without volumes")?;
        let ours = volumes.iter().find(|volume| volume["name"] == kind.volume());
        ours.and_then(|ours| ours["unapplied_bytes"].as_u64()).ok_or("no such volume".into())
    }

    /// Unmounts a volume, and mounts it again; returns how long the unmounting took.
    ///
    /// # Errors
    /// If the command fails.
    pub fn remount(&self, kind: Kind) -> Result<Duration, Failure> {
        let began = Instant::now();
        self.run(&["umount", &kind.volume()])?;
        let took = began.elapsed();
        self.run(&["mount", &kind.volume()])?;
        until("mounting", || Ok(is_mounted(&self.path(kind))))?;
        Ok(took)
    }

    /// Unmounts everything.
    ///
    /// # Errors
    /// If something is still in use.
    pub fn unmount(&mut self) -> Result<(), Failure> {
        for kind in Kind::VOLUMES {
            self.run(&["umount", &kind.volume()])?;
        }
        for kind in Kind::FUSE_ALONE {
            unmount(self.path(kind), UnmountFlags::empty())?;
        }
        Ok(())
    }

    fn run(&self, words: &[&str]) -> Result<String, Failure> {
        command(&self.root, &self.holdfast, words)
    }
}

impl Drop for Places {
    /// What was not unmounted in order is taken away all the same.
    fn drop(&mut self) {
        for kind in Kind::MOUNTED {
            let _gone = unmount(self.path(kind), UnmountFlags::DETACH);
        }
        for process in &mut self.processes {
            let _gone = process.kill();
            let _gone = process.wait();
        }
        for kind in Kind::VOLUMES {
            let _gone = fs::remove_file(region(kind));
        }
    }
}

/// The FUSE file system that hands everything on.
fn handing_on(root: &Path, holdfast: &Path, kind: Kind) -> Command {
    let mut disk = Command::new(holdfast.with_file_name(SLOW_DISK));
    disk.args(["--rpm", FASTEST, "--mb-per-s", FASTEST]);
    let part = |part: &str| root.join(kind.name()).join(part);
    disk.arg("--backing").arg(part("home")).arg("--mount").arg(part("mount"));
    disk
}

fn region(kind: Kind) -> PathBuf {
    format!("/dev/shm/{}", kind.volume()).into()
}

fn configuration(root: &Path) -> String {
    let mut text = format!("[keeper]\nsocket = {:?}\n", root.join("keeper.sock"));
    for kind in Kind::VOLUMES {
        let part = |part: &str| root.join(kind.name()).join(part);
        text += &format!(
            "\n[volume.{}]\nhome = {:?}\nmount = {:?}\nlog = {:?}\nmemory = {{ medium = \"shm\", \
             size = \"256MiB\", path = {:?} }}\nmust_survive = [{}]\n",
            kind.volume(),
            part("home"),
            part("mount"),
            part("log"),
            region(kind),
            kind.must_survive()
        );
    }
    text
}

fn quietly(command: &mut Command, log: &Path) -> Result<Child, Failure> {
    let log = File::create(log)?;
    Ok(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?)
}

fn command(root: &Path, holdfast: &Path, words: &[&str]) -> Result<String, Failure> {
    let done = with_configuration(root, holdfast, words)?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(format!("holdfast {}: {said}", words.join(" ")).into());
    }
    Ok(String::from_utf8(done.stdout)?)
}

fn with_configuration(root: &Path, holdfast: &Path, words: &[&str]) -> io::Result<Output> {
    Command::new(holdfast).arg("--config").arg(root.join("files.toml")).args(words).output()
}

fn is_mounted(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    table.lines().any(|line| line.split(' ').nth(1).is_some_and(|point| Path::new(point) == path))
}

fn until(what: &str, done: impl Fn() -> Result<bool, Failure>) -> Result<(), Failure> {
    let began = Instant::now();
    while !done()? {
        if began.elapsed() > PATIENCE {
            return Err(format!("{what} takes more than {PATIENCE:?}").into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
