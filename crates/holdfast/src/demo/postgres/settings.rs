//! The four settings that are compared, and the directories they keep `pg_wal` in.
//!
//! Promise: sync, async and Holdfast pay one and the same modelled log disk; for Holdfast both its
//! log and its home lie on it, so it pays for each byte twice. tmpfs pays no disk at all.
//! Never: differs between settings in anything but the place of `pg_wal` and
//! `synchronous_commit`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::demo::cleanup::is_mounted;
use crate::demo::error::{DemoError, During};

/// Turns of the modelled disk in a minute.
pub(super) const TURNS_PER_MINUTE: u32 = 10_000;

/// Sequential rate of the modelled disk.
pub(super) const MEGABYTES_PER_S: u32 = 100;

const MOUNT_PATIENCE: Duration = Duration::from_secs(10);

/// One way to run PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Every commit waits for the log disk.
    Sync,
    /// No commit waits; a crash of the server loses the last ones.
    Async,
    /// Every commit waits for Holdfast, on the same log disk.
    Holdfast,
    /// Every commit waits for a log that lies in memory and is lost with it: the upper bound.
    Tmpfs,
}

impl Setting {
    /// All of them, in the order of the table.
    pub(super) const ALL: [Setting; 4] =
        [Setting::Sync, Setting::Async, Setting::Holdfast, Setting::Tmpfs];

    /// Name in ids of figures.
    pub(super) fn id(self) -> &'static str {
        match self {
            Setting::Sync => "sync",
            Setting::Async => "async",
            Setting::Holdfast => "holdfast",
            Setting::Tmpfs => "tmpfs",
        }
    }

    /// Name for people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Setting::Sync => "sync (the default)",
            Setting::Async => "synchronous_commit=off",
            Setting::Holdfast => "Holdfast",
            Setting::Tmpfs => "log in tmpfs (bound)",
        }
    }

    /// What is left of the acknowledged transactions when the power fails.
    pub(super) fn risk(self) -> &'static str {
        match self {
            Setting::Sync => "nothing",
            Setting::Async => "the last transactions, also at a crash of the server",
            Setting::Holdfast => "the last transactions; a consistent prefix stays",
            Setting::Tmpfs => "the database",
        }
    }

    /// Value of PostgreSQL's `synchronous_commit`.
    pub(super) fn synchronous_commit(self) -> &'static str {
        if self == Setting::Async { "off" } else { "on" }
    }
}

/// The directories behind the settings, mounted. The sweep of the work directory undoes them.
pub(super) struct Places {
    work: PathBuf,
    _slow_disk: Child,
}

impl Places {
    /// Mounts the modelled disk and a tmpfs below `work`.
    pub(super) fn mount(work: &Path) -> Result<Places, DemoError> {
        let slow_disk = mount_slow_disk(work)?;
        let places = Places { work: work.to_owned(), _slow_disk: slow_disk };
        places.mount_tmpfs()?;
        Ok(places)
    }

    fn mount_tmpfs(&self) -> Result<(), DemoError> {
        let (doing, point) = (|| "mounting a tmpfs".into(), self.work.join("tmpfs"));
        fs::create_dir(&point).during(doing)?;
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4g,mode=0755", "tmpfs"])
            .arg(point)
            .output();
        super::cluster::said("mount", &mount.during(doing)?).map(drop)
    }

    /// The modelled disk.
    pub(super) fn slow_disk(&self) -> PathBuf {
        self.work.join("slow")
    }

    /// Where the Holdfast volume is mounted.
    pub(super) fn volume_mount(&self) -> PathBuf {
        self.work.join("wal")
    }

    /// The Holdfast volume's home: an ordinary directory on the modelled disk.
    pub(super) fn volume_home(&self) -> PathBuf {
        self.slow_disk().join("home")
    }

    /// Where `pg_wal` lies under a setting.
    pub(super) fn wal(&self, setting: Setting) -> PathBuf {
        match setting {
            Setting::Sync | Setting::Async => self.slow_disk().join("pg_wal"),
            Setting::Holdfast => self.volume_mount(),
            Setting::Tmpfs => self.work.join("tmpfs/pg_wal"),
        }
    }
}

/// This program. It plays the other parts too, under other subcommands.
pub(super) fn this_program() -> Result<PathBuf, DemoError> {
    std::env::current_exe().during(|| "finding this program".into())
}

/// Starts the modelled disk and waits until it is mounted.
fn mount_slow_disk(work: &Path) -> Result<Child, DemoError> {
    let doing = || "mounting the modelled disk".into();
    let (backing, point) = (work.join("slow.backing"), work.join("slow"));
    fs::create_dir(&backing).during(doing)?;
    fs::create_dir(&point).during(doing)?;
    let log = work.join("slowdisk.log");
    let mut command = Command::new(this_program()?);
    command.arg("slowdisk").arg("--backing").arg(backing).arg("--mount").arg(&point);
    command.args(["--rpm", &TURNS_PER_MINUTE.to_string()]);
    command.args(["--mb-per-s", &MEGABYTES_PER_S.to_string()]);
    let mut disk = spawn(command, work, &log)?;
    let give_up = Instant::now() + MOUNT_PATIENCE;
    while !is_mounted(&point) {
        let ended = disk.try_wait().during(doing)?.is_some();
        if ended || Instant::now() > give_up {
            let log = fs::read_to_string(log).unwrap_or_default();
            return Err(DemoError::new(doing(), format!("it did not come up; it said: {log}")));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(disk)
}

/// Starts one of our own programs in the work directory, where the sweep finds it, away from the
/// terminal's Ctrl-C, with its output in a file.
pub(super) fn spawn(mut command: Command, work: &Path, log: &Path) -> Result<Child, DemoError> {
    use std::os::unix::process::CommandExt;
    let doing = || format!("starting {command:?}", command = log.display());
    let log = File::options().create(true).append(true).open(log).during(doing)?;
    command.current_dir(work).process_group(0).stdin(Stdio::null());
    command.stdout(log.try_clone().during(doing)?).stderr(log);
    command.spawn().during(doing)
}
