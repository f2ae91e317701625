//! Overlays that a directory of a home is a layer of.
//!
//! Promise: a layer is found by the name that whoever mounted it gave it, as it leads where he is
//! and where we are.
//! Never: waits for a file system that such a name leads through; finds a layer that has another
//! name by now, or had one that begins in a working directory.

use holdfast_machine::mounts::views::View;
use holdfast_machine::processes::{Process, ask};
use rustix::fs::{Mode, OFlags, ResolveFlags, Stat, fstat, open, openat, openat2};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// More than a directory has above it.
const STEPS_MAX: usize = 4096;

/// The overlay of a view, and the layer of it that is the home, or below it. An error is that the
/// process whose view it is does not tell.
pub(super) fn overlay_of(view: &View, home: &Stat) -> Result<Option<(PathBuf, PathBuf)>, u32> {
    let of = |layer: &PathBuf, point: &Path| (layer.clone(), point.to_owned());
    let overlays = view.mounts.iter();
    let layers: Vec<_> = overlays
        .flat_map(|mount| mount.layers.iter().map(|layer| of(layer, &mount.point)))
        .filter(|(layer, _)| layer.is_absolute())
        .collect();
    let (home, pid) = ((home.st_dev, home.st_ino), view.pids[0]);
    if layers.is_empty() {
        return Ok(None);
    }
    let look = move |process: &Process| {
        let roots = [process.at("root"), PathBuf::from("/")];
        let is_in = |layer: &Path| roots.iter().any(|root| is_below(root, layer, home));
        layers.iter().find(|(layer, _)| is_in(layer)).cloned()
    };
    ask(pid, look).ok_or(pid)
}

/// Whether the name leads into a directory with this device and inode, or to itself.
fn is_below(root: &Path, name: &Path, home: (u64, u64)) -> bool {
    let Ok(mut at) = opened(root, name) else { return false };
    for _ in 0..STEPS_MAX {
        let Ok(here) = numbers(&at) else { return false };
        if here == home {
            return true;
        }
        let above = openat(&at, "..", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        match above {
            Ok(above) if numbers(&above) != Ok(here) => at = above,
            _ => return false,
        }
    }
    false
}

fn opened(root: &Path, name: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = open(root, flags, Mode::empty())?;
    openat2(root, name, flags, Mode::empty(), ResolveFlags::IN_ROOT)
}

fn numbers(file: impl AsFd) -> Result<(u64, u64), Errno> {
    fstat(file).map(|found| (found.st_dev, found.st_ino))
}
