//! The settings that are compared, and the disks they pay for.
//!
//! Promise: sync, async and Holdfast pay one and the same modelled disk; for Holdfast both its log
//! and its home lie on it, so it pays for each byte twice, unless its log is said to be elsewhere.
//! tmpfs pays no disk at all.
//! Never: knows what a database keeps there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::Signal;

use super::cleanup::{WorkDir, is_mounted};
use super::error::{DemoError, During};
use super::processes::{self, said, signal, spawn, wait_until_ready};
use super::programs::Programs;
use super::site::{Site, Way};

/// Turns of the modelled disk in a minute.
pub(super) const TURNS_PER_MINUTE: u32 = 10_000;

/// Sequential rate of the modelled disk.
pub(super) const MEGABYTES_PER_S: u32 = 100;

const MOUNT_PATIENCE: Duration = Duration::from_secs(10);

/// One way to run a database. They differ in nothing but the disk and what a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Every commit waits for the disk.
    Sync,
    /// No commit waits; the last ones can be lost.
    Async,
    /// Every commit waits for Holdfast, on the same disk, by one of the ways to its log.
    Holdfast(Way),
    /// Every commit waits for Holdfast's log, which has this machine's own disk.
    FastLog,
    /// Every commit waits for Holdfast, whose memory acknowledges while a power source is armed.
    Powered,
    /// Every commit waits for a disk that is memory and is lost with it: the upper bound.
    Tmpfs,
}

impl Setting {
    /// With a volume as it is by default.
    pub(super) const HOLDFAST: Setting = Setting::Holdfast(Way::Direct);
}

/// The modelled disk and a tmpfs, mounted. The sweep of the work directory undoes them.
pub(super) struct Disks {
    work: PathBuf,
    programs: Programs,
    slow_disk: Child,
}

impl Disks {
    /// Mounts both below `work`.
    pub(super) fn mount(work: &WorkDir) -> Result<Disks, DemoError> {
        let disks = Disks::mount_slow(work, None)?;
        disks.mount_tmpfs()?;
        Ok(disks)
    }

    /// Mounts a modelled disk whose power can fail, and nothing else.
    pub(super) fn mount_mortal(work: &WorkDir, seed: u64) -> Result<Disks, DemoError> {
        Disks::mount_slow(work, Some(seed))
    }

    fn mount_slow(work: &WorkDir, power_cut_seed: Option<u64>) -> Result<Disks, DemoError> {
        let (work, programs) = (work.path().to_owned(), work.programs().clone());
        let slow_disk = mount_slow_disk(&programs, &work, power_cut_seed)?;
        Ok(Disks { work, programs, slow_disk })
    }

    /// The power fails: what was not synced is lost, sector by sector, at random. Whoever wrote
    /// must be dead. Then the disk is mounted again, with the power on and another seed.
    pub(super) fn cut_power(&mut self, next_seed: u64) -> Result<(), DemoError> {
        let doing = || "cutting the power of the modelled disk".into();
        signal(self.slow_disk.id().cast_signed(), Signal::USR1);
        let ended = processes::wait(&mut self.slow_disk, MOUNT_PATIENCE).during(doing)?;
        if ended.is_none() {
            return Err(DemoError::new(doing(), "it is still in use"));
        }
        self.slow_disk = mount_slow_disk(&self.programs, &self.work, Some(next_seed))?;
        Ok(())
    }

    fn mount_tmpfs(&self) -> Result<(), DemoError> {
        let (doing, point) = (|| "mounting a tmpfs".into(), self.work.join("tmpfs"));
        fs::create_dir(&point).during(doing)?;
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4g,mode=0755", "tmpfs"])
            .arg(point)
            .output();
        said("mount", &mount.during(doing)?).map(drop)
    }

    /// The modelled disk.
    pub(super) fn slow(&self) -> PathBuf {
        self.work.join("slow")
    }

    /// Where everything of the volume lies whose log is reached by this way: its home and its log
    /// on the modelled disk.
    pub(super) fn site(&self, way: Way) -> Site {
        Site::of(&self.programs.holdfast, &self.work, &self.slow(), way)
    }

    /// A place for each setting, on the disk that the setting pays for.
    pub(super) fn places(&self) -> Places {
        Places::Apart {
            slow: self.slow().join("files"),
            direct: self.site(Way::Direct).mount(),
            queue: self.site(Way::Queue).mount(),
            fast_log: self.site(Way::Direct).with_fast_log().mount(),
            powered: self.site(Way::Direct).powered().mount(),
            tmpfs: self.work.join("tmpfs/files"),
        }
    }
}

/// Where a database's files lie.
pub(super) enum Places {
    /// Under each setting elsewhere.
    Apart {
        /// On the modelled disk.
        slow: PathBuf,
        /// On the volume of the direct way.
        direct: PathBuf,
        /// On the volume of the queue.
        queue: PathBuf,
        /// On the volume whose log has a disk of its own.
        fast_log: PathBuf,
        /// On the volume that relies on a power source.
        powered: PathBuf,
        /// In memory.
        tmpfs: PathBuf,
    },
    /// In one directory, whatever the setting.
    One(PathBuf),
}

impl Places {
    /// The directory of a setting.
    pub(super) fn of(&self, setting: Setting) -> &Path {
        match self {
            Places::One(place) => place,
            Places::Apart { slow, direct, queue, fast_log, powered, tmpfs } => match setting {
                Setting::Sync | Setting::Async => slow,
                Setting::Holdfast(Way::Direct) => direct,
                Setting::Holdfast(Way::Queue) => queue,
                Setting::FastLog => fast_log,
                Setting::Powered => powered,
                Setting::Tmpfs => tmpfs,
            },
        }
    }
}

/// What the disk is, in figures.
pub(super) fn model() -> String {
    format!("model: {TURNS_PER_MINUTE} turns per minute, {MEGABYTES_PER_S} MB/s")
}

/// Starts the modelled disk and waits until it is mounted.
fn mount_slow_disk(
    programs: &Programs,
    work: &Path,
    power_cut_seed: Option<u64>,
) -> Result<Child, DemoError> {
    let doing = "mounting the modelled disk";
    let (backing, point) = (work.join("slow.backing"), work.join("slow"));
    fs::create_dir_all(&backing).during(|| doing.into())?;
    fs::create_dir_all(&point).during(|| doing.into())?;
    let log = work.join("slowdisk.log");
    let mut command = Command::new(&programs.slow_disk);
    command.arg("--backing").arg(backing).arg("--mount").arg(&point);
    command.args(["--rpm", &TURNS_PER_MINUTE.to_string()]);
    command.args(["--mb-per-s", &MEGABYTES_PER_S.to_string()]);
    if let Some(seed) = power_cut_seed {
        command.args(["--power-cut-seed", &seed.to_string()]);
    }
    let mut disk = spawn(command, work, &log)?;
    wait_until_ready(doing, &mut disk, &log, MOUNT_PATIENCE, || is_mounted(&point))?;
    Ok(disk)
}
