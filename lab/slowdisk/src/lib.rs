//! A slow disk: a directory that behaves, in time, like a disk with one head and a turning platter.
//!
//! Promise: both sides of a comparison pay for the same disk: a sync costs what `platter` says,
//! whoever asks, and nothing else costs anything.
//! Never: makes anything durable. It is a model for measurements, not a place for data.

mod passthrough;
mod platter;
mod table;
#[cfg(test)]
mod tests;
mod unsynced;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use clap::Parser;
use holdfast_front::fuse::{
    self, Cache, FuseConfig, ListenConfig, ListenError, MountError, MountOptions, Session,
};
use holdfast_io::private;
use holdfast_io::real::{RealClock, RealFiles};
use rustix::mount::{UnmountFlags, unmount};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use passthrough::Passthrough;
use platter::Platter;

/// What is mounted, as the system shows it.
const SOURCE: &str = "slowdisk";

/// Enough for the clients of a benchmark: a thread sleeps while its platter turns.
const THREADS: usize = 16;

/// Mounts a directory that is as slow as a disk with one head and a turning platter.
///
/// A model for measurements: nothing on it is safe.
#[derive(Clone, Debug, Parser)]
#[command(name = "holdfast-slowdisk", version)]
pub struct SlowDisk {
    /// The directory that keeps the contents.
    #[arg(long, value_name = "DIR")]
    pub backing: PathBuf,
    /// Where they are seen.
    #[arg(long = "mount", value_name = "DIR")]
    pub mountpoint: PathBuf,
    /// Turns of the platter a minute.
    #[arg(long = "rpm", value_name = "N", default_value_t = 10_000)]
    pub turns_per_minute: u32,
    /// Transfer rate in megabytes a second.
    #[arg(long = "mb-per-s", value_name = "N", default_value_t = 100)]
    pub megabytes_per_s: u32,
    /// Let SIGUSR1 be a power cut: of what was not synced, each sector is kept or lost at random,
    /// drawn from this seed, and the disk ends.
    #[arg(long, value_name = "SEED")]
    pub power_cut_seed: Option<u64>,
    /// Sync the directory below, too, so that a sync means what it means there. With the fastest
    /// platter, what it costs beyond that is FUSE.
    #[arg(long = "sync-below")]
    pub syncs_below: bool,
}

/// What the disk did in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Syncs that had something to flush.
    pub flushes: u64,
    /// Bytes they flushed.
    pub flushed_bytes: u64,
}

/// Why there is no slow disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SlowDiskError {
    /// The speed is none: both numbers must be at least 1.
    #[error("a disk turns and transfers: give numbers of at least 1")]
    Speed,
    /// The backing directory cannot be opened.
    #[error("cannot open {0}: {1}")]
    Backing(PathBuf, io::Error),
    /// It cannot be mounted.
    #[error("{0}")]
    Mount(MountError),
    /// It cannot be served.
    #[error("{0}")]
    Listen(ListenError),
    /// Signals cannot be received.
    #[error("cannot receive signals: {0}")]
    Signals(io::Error),
}

/// Serves until unmounted. SIGTERM, SIGINT and a terminal that closes unmount: at once out of
/// sight, and for good when the last program has let go. If the power can fail, SIGUSR1 takes what
/// was not synced, and then cuts everybody off; whoever sends it has seen to it that nobody writes
/// any more.
///
/// # Errors
/// If it cannot be mounted or served.
pub fn run(disk: &SlowDisk) -> Result<Counts, SlowDiskError> {
    let platter = Platter::new(disk.turns_per_minute, disk.megabytes_per_s, Arc::new(RealClock))
        .ok_or(SlowDiskError::Speed)?;
    let files = RealFiles::open(&disk.backing)
        .map_err(|error| SlowDiskError::Backing(disk.backing.clone(), error))?;
    let power_can_fail = disk.power_cut_seed.is_some();
    let tree = Passthrough::new(Arc::new(files), platter, power_can_fail, disk.syncs_below)
        .map_err(|error| SlowDiskError::Backing(disk.backing.clone(), error))?;
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1]).map_err(SlowDiskError::Signals)?;
    let (device, mount) = mount(&disk.mountpoint).map_err(SlowDiskError::Mount)?;
    let handle = signals.handle();
    let served = thread::scope(|scope| {
        scope.spawn(|| {
            for signal in signals.forever() {
                if signal == SIGUSR1 {
                    cut_power(&tree, disk.power_cut_seed);
                    // Ends the connection; it is refused while files are open.
                    let _ = unmount(&mount, UnmountFlags::FORCE);
                }
                // It fails if somebody else unmounted first, which is as good.
                let _ = unmount(&mount, UnmountFlags::DETACH);
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

/// Mounts over a directory; says where that is without links.
fn mount(mountpoint: &Path) -> Result<(OwnedFd, PathBuf), MountError> {
    let (directory, at) =
        private::mount_point(mountpoint).map_err(|error| MountError::at(mountpoint, error))?;
    let options = MountOptions { name: SOURCE.to_owned() };
    Ok((fuse::mount_on(&directory, &options)?, at))
}

/// What cannot be taken back stays, which is as good as synced in time; it is said all the same.
fn cut_power(tree: &Passthrough, seed: Option<u64>) {
    let (Some(unsynced), Some(seed)) = (tree.unsynced(), seed) else { return };
    match unsynced.cut(seed) {
        Ok(taken) => tracing::info!(taken, "the power failed; pieces of sectors were taken back"),
        Err(error) => tracing::warn!(%error, "the power failed; not all could be taken back"),
    }
}
