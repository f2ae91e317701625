//! A slow disk: a directory that behaves, in time, like a disk with one head and a turning platter.
//!
//! Promise: both sides of a comparison pay for the same disk: a sync costs what [`platter`] says,
//! whoever asks, and nothing else costs anything.
//! Never: makes anything durable. It is a model for measurements, not a place for data.

mod passthrough;
mod platter;
mod table;
#[cfg(test)]
mod tests;
mod unsynced;

use std::fmt;
use std::io;
use std::path::{self, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::keeper::mounts::point::MountPoint;
use crate::keeper::mounts::{detach, leads_to, our_mount_at, unmount};
use crate::problem::Problem;
use holdfast_front::fuse::{self, Cache, FuseConfig, ListenConfig, ListenError, Session};
use holdfast_io::real::{RealClock, RealFiles};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use passthrough::Passthrough;
use platter::Platter;

/// What is mounted, as the system shows it.
const SOURCE: &str = "slowdisk";

/// Enough for the clients of a benchmark: a thread sleeps while its platter turns.
const THREADS: usize = 16;

/// Which disk, and where.
#[derive(Clone, Debug)]
pub(crate) struct SlowDisk {
    /// An existing directory that keeps the contents.
    pub(crate) backing: PathBuf,
    /// An existing directory through which they are seen.
    pub(crate) mountpoint: PathBuf,
    /// Turns of the platter a minute.
    pub(crate) turns_per_minute: u32,
    /// Transfer rate in megabytes a second.
    pub(crate) megabytes_per_s: u32,
    /// Seed of a power cut, which SIGUSR1 brings about; without one the power cannot fail.
    pub(crate) power_cut_seed: Option<u64>,
}

/// What the disk did in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Syncs that had something to flush.
    pub(crate) flushes: u64,
    /// Bytes they flushed.
    pub(crate) flushed_bytes: u64,
}

/// Why there is no slow disk.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum SlowDiskError {
    /// The speed is none: both numbers must be at least 1.
    Speed,
    /// The backing directory cannot be opened.
    Backing(PathBuf, io::Error),
    /// It cannot be mounted.
    Mount(Problem),
    /// It was mounted, and is not where it was by now.
    Moved,
    /// It cannot be served.
    Listen(ListenError),
    /// Signals cannot be received.
    Signals(io::Error),
}

impl fmt::Display for SlowDiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Speed => write!(f, "a disk turns and transfers: give numbers of at least 1"),
            Self::Backing(path, error) => write!(f, "cannot open {}: {error}", path.display()),
            Self::Mount(problem) => write!(f, "{problem}"),
            Self::Moved => write!(f, "somebody moved it while it was mounted"),
            Self::Listen(error) => write!(f, "{error}"),
            Self::Signals(error) => write!(f, "cannot receive signals: {error}"),
        }
    }
}

impl std::error::Error for SlowDiskError {}

/// Serves until unmounted. SIGTERM, SIGINT and a terminal that closes unmount: at once out of
/// sight, and for good when the last program has let go. If the power can fail, SIGUSR1 takes what
/// was not synced, and then cuts everybody off; whoever sends it has seen to it that nobody writes
/// any more.
pub(crate) fn run(disk: &SlowDisk) -> Result<Counts, SlowDiskError> {
    let platter = Platter::new(disk.turns_per_minute, disk.megabytes_per_s, Arc::new(RealClock))
        .ok_or(SlowDiskError::Speed)?;
    let files = RealFiles::open(&disk.backing)
        .map_err(|error| SlowDiskError::Backing(disk.backing.clone(), error))?;
    let tree = Passthrough::new(Arc::new(files), platter, disk.power_cut_seed.is_some())
        .map_err(|error| SlowDiskError::Backing(disk.backing.clone(), error))?;
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1]).map_err(SlowDiskError::Signals)?;
    let shown_at = path::absolute(&disk.mountpoint)
        .map(|point| leads_to(&point))
        .map_err(|error| SlowDiskError::Backing(disk.mountpoint.clone(), error))?;
    let point = MountPoint::find("modelling a disk", &disk.mountpoint, None);
    let device = point.and_then(|point| point.mount("a modelled disk", SOURCE));
    let device = device.map_err(SlowDiskError::Mount)?;
    let mount = our_mount_at(&shown_at, SOURCE).ok_or(SlowDiskError::Moved)?;
    let handle = signals.handle();
    let served = thread::scope(|scope| {
        scope.spawn(|| {
            for signal in signals.forever() {
                // It fails if somebody else unmounted first, which is as good.
                if signal == SIGUSR1 {
                    cut_power(&tree, disk.power_cut_seed);
                    let _ = unmount(&mount, true);
                } else {
                    let _ = detach(&mount);
                }
            }
        });
        let listen = ListenConfig { threads: THREADS };
        let config = FuseConfig { listen, cache: Cache::WriteThrough };
        let served = fuse::serve(&Session::adopt(device), &tree, &config);
        handle.close();
        served
    });
    served.map_err(SlowDiskError::Listen)?;
    Ok(tree.platter().counts())
}

/// What cannot be taken back stays, which is as good as synced in time; it is said all the same.
fn cut_power(tree: &Passthrough, seed: Option<u64>) {
    let (Some(unsynced), Some(seed)) = (tree.unsynced(), seed) else { return };
    match unsynced.cut(seed) {
        Ok(taken) => tracing::info!(taken, "the power failed; pieces of sectors were taken back"),
        Err(error) => tracing::warn!(%error, "the power failed; not all could be taken back"),
    }
}
