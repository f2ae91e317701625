//! The work directory of a demonstration, and its removal.
//!
//! Promise: when the demonstration ends, by success, error, Ctrl-C or SIGTERM, its processes are
//! gone, its mounts are undone and its directory is removed. What a run that was itself killed
//! left behind is removed by the next run.
//! Never: removes a file while something is still mounted below the directory, or kills a process
//! that is not one of ours.
//!
//! A process is one of ours if its working directory lies inside the work directory *and* it runs
//! one of the programs the demonstration starts. That needs no record that could itself be lost,
//! and it spares the shell of somebody who is looking around in there.

use holdfast_io::private::{self, Reach};
use holdfast_io::process;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::error::{DemoError, During};
use super::programs::Programs;

/// Programs that a demonstration starts, beside [`Programs`].
const PROGRAMS: [&str; 9] = [
    "postgres",
    "pgbench",
    "psql",
    "pg_amcheck",
    "pg_isready",
    "initdb",
    "mariadbd",
    "mariadb",
    "sysbench",
];

/// How long processes may take to go by themselves. PostgreSQL gives back its shared memory, which
/// the kernel would keep.
const COURTESY: Duration = Duration::from_millis(500);

/// How long killed processes and busy mounts are waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Exit code of a run that a signal ended, as shells expect it for Ctrl-C.
const INTERRUPTED: i32 = 130;

/// A claimed work directory. Dropping it removes everything in it.
pub(crate) struct WorkDir {
    path: PathBuf,
    programs: Programs,
    sweep: Arc<Mutex<Sweep>>,
}

/// What the removal needs; shared with the thread that waits for signals.
struct Sweep {
    path: PathBuf,
    programs: Programs,
    /// Files outside the work directory that go with it: regions in `/dev/shm`.
    strays: Vec<PathBuf>,
    /// Holds the claim. The kernel gives it back if this process dies.
    _claim: File,
}

impl WorkDir {
    /// Claims `path`, sweeps what an earlier run left there, and arranges for the removal.
    /// `strays` are files elsewhere that belong to the run, and `programs` what it starts.
    pub(crate) fn claim(
        path: &Path,
        strays: Vec<PathBuf>,
        programs: Programs,
    ) -> Result<WorkDir, DemoError> {
        let doing = || format!("claiming the work directory {}", path.display());
        // Programs of other users go through it, but nobody else may put anything there.
        let folder = private::public_directory(path).during(doing)?;
        folder.allow(Reach::Nobody).during(doing)?;
        let claim = File::from(folder.open().during(doing)?);
        rustix::fs::flock(&claim, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            DemoError::new(doing(), "another demonstration is running; wait for it")
        })?;
        let sweep =
            Sweep { path: path.to_owned(), programs: programs.clone(), strays, _claim: claim };
        sweep
            .run()
            .during(|| format!("removing what an earlier run left in {}", path.display()))?;
        let sweep = Arc::new(Mutex::new(sweep));
        sweep_on_signal(Arc::clone(&sweep)).during(|| "waiting for signals".into())?;
        Ok(WorkDir { path: path.to_owned(), programs, sweep })
    }

    /// Removes everything and keeps the claim, so that something else can begin.
    pub(crate) fn clear(&self) -> Result<(), DemoError> {
        let sweep = self.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        sweep.run().during(|| format!("clearing {}", self.path.display()))
    }

    /// What the run shows, and runs on.
    pub(crate) fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Where everything of the run lives.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        let sweep = self.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        if sweep.run().and_then(|()| fs::remove_dir(&sweep.path)).is_err() {
            let words = format!("{} stays; the next run removes it", sweep.path.display());
            let _unwritable = writeln!(io::stderr(), "{words}");
        }
    }
}

/// Starts the thread that removes everything on a signal and ends the process. It keeps the lock
/// until the process is gone, so the interrupted thread cannot sweep, or report, at the same time.
fn sweep_on_signal(sweep: Arc<Mutex<Sweep>>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        if signals.forever().next().is_some() {
            let sweep = sweep.lock().unwrap_or_else(PoisonError::into_inner);
            let words = format!("interrupted: removing {}", sweep.path.display());
            let _unwritable = writeln!(io::stderr(), "{words}");
            let _left_for_the_next_run = sweep.run().and_then(|()| fs::remove_dir(&sweep.path));
            std::process::exit(INTERRUPTED);
        }
    })?;
    Ok(())
}

impl Sweep {
    /// Kills, unmounts, removes. Leaves the directory itself, which carries the claim.
    fn run(&self) -> io::Result<()> {
        self.kill_all()?;
        self.unmount_all()?;
        for entry in fs::read_dir(&self.path)? {
            remove(&entry?.path())?;
        }
        self.strays.iter().filter(|stray| stray.exists()).try_for_each(|stray| remove(stray))
    }

    /// Ends our processes, politely first, until none is left. A process that waits for a dead
    /// mount dies only when the mount is gone, so mounts are undone in between.
    fn kill_all(&self) -> io::Result<()> {
        let began = Instant::now();
        loop {
            let ours = self.processes();
            if ours.is_empty() {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("processes {ours:?} do not die")));
            }
            let polite = began.elapsed() < COURTESY;
            let signal = if polite { Signal::QUIT } else { Signal::KILL };
            for pid in ours.iter().filter_map(|&pid| Pid::from_raw(pid)) {
                let _may_be_gone = kill_process(pid, signal);
            }
            if !polite {
                self.unmount_all()?;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Our processes: one of our programs, working inside the work directory, not this one.
    fn processes(&self) -> Vec<i32> {
        let link = |pid: u32, name: &str| fs::read_link(format!("/proc/{pid}/{name}")).ok();
        let is_ours = |pid: &u32| {
            let program = || link(*pid, "exe").and_then(|at| Some(at.file_name()?.to_owned()));
            *pid != std::process::id()
                && link(*pid, "cwd").is_some_and(|at| at.starts_with(&self.path))
                && program().is_some_and(|name| is_our_program(&self.programs, &name))
        };
        process::all().into_iter().filter(is_ours).map(u32::cast_signed).collect()
    }

    /// Undoes the mounts below the directory, the deepest first.
    fn unmount_all(&self) -> io::Result<()> {
        for mount in mounts_below(&self.path)?.iter().rev() {
            let how = UnmountFlags::DETACH | UnmountFlags::FORCE;
            rustix::mount::unmount(mount, how).or_else(|_| {
                // A file system that knows no force is detached without it.
                rustix::mount::unmount(mount, UnmountFlags::DETACH)
            })?;
        }
        Ok(())
    }
}

/// The kernel appends ` (deleted)` to the name of a program that was rebuilt meanwhile.
fn is_our_program(programs: &Programs, name: &OsStr) -> bool {
    let name = name.as_bytes();
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let databases = PROGRAMS.iter().map(OsStr::new);
    databases.chain(programs.names()).any(|program| program.as_bytes() == name)
}

/// Mount points below `path`, in mount order.
pub(crate) fn mounts_below(path: &Path) -> io::Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let points = table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    Ok(points.filter(|point| point.starts_with(path)).collect())
}

/// True if something is mounted exactly at `path`.
pub(crate) fn is_mounted(path: &Path) -> bool {
    mounts_below(path).is_ok_and(|points| points.iter().any(|point| point == path))
}

fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests;
