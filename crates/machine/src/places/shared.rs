//! Whether two paths of the configuration lead to one place.
//!
//! Promise: they do however they are written and by whatever way: through `..`, links, mounts of a
//! part of the same file system elsewhere, another name of the same file or device.
//! Never: waits for a file system that does not answer; such a path is judged by its letters.

use super::{Id, Within, within};
use crate::mounts::{Mount, all_mounts, leads_to};
use crate::threads::beside;
use crate::unasked::behind;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a path may take to say where it leads.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where a path leads.
#[derive(Debug)]
struct Spot {
    path: PathBuf,
    own: Option<Id>,
    within: Option<Within>,
}

impl Spot {
    fn of(path: &Path, mounts: &[Mount]) -> Spot {
        let path = leads_to(path);
        Spot { own: own(&path), within: within(&path, mounts), path }
    }

    /// Of a path that nobody can follow now.
    fn unseen(path: &Path) -> Spot {
        Spot { path: path.to_owned(), own: None, within: None }
    }

    fn is(&self, other: &Spot) -> bool {
        self.path == other.path
            || (self.own.is_some() && self.own == other.own)
            || (self.within.is_some() && self.within == other.within)
    }
}

/// What is there: of a device, the device, whatever it is called.
fn own(path: &Path) -> Option<Id> {
    let seen = behind(path)?;
    let device = |major: u32, minor: u32| (u64::from(major) << 32) | u64::from(minor);
    match FileType::from_raw_mode(seen.stx_mode.into()) {
        FileType::BlockDevice => Some((u64::MAX, device(seen.stx_rdev_major, seen.stx_rdev_minor))),
        _ => Some((device(seen.stx_dev_major, seen.stx_dev_minor), seen.stx_ino)),
    }
}

/// Where all of them lead, in their order.
fn spots(paths: &[&Path]) -> Vec<Spot> {
    let mut spots = Vec::with_capacity(paths.len());
    while let Some(first) = paths.get(spots.len()) {
        let rest: Vec<PathBuf> = paths[spots.len()..].iter().map(|path| (*path).into()).collect();
        let (sender, seen) = channel();
        // One that is kept by a file system ends with the process.
        beside("places", move |_| {
            let mounts = all_mounts();
            let mut paths = rest.iter();
            while paths.next().is_some_and(|path| sender.send(Spot::of(path, &mounts)).is_ok()) {}
        });
        let before = spots.len();
        while let Ok(spot) = seen.recv_timeout(PATIENCE) {
            spots.push(spot);
        }
        if spots.len() == before {
            spots.push(Spot::unseen(first));
        }
    }
    spots
}

/// The first two of these that lead to one place, unless `may_share` says that they may.
pub(crate) fn shared(
    paths: &[(String, &Path)],
    may_share: &dyn Fn(&str, &str) -> bool,
) -> Option<(usize, usize)> {
    let only: Vec<&Path> = paths.iter().map(|(_, path)| *path).collect();
    let spots = spots(&only);
    let is_one = |one: usize, other: usize| {
        spots[one].is(&spots[other]) && !may_share(&paths[one].0, &paths[other].0)
    };
    let mut pairs = (0..spots.len()).flat_map(|other| (0..other).map(move |one| (one, other)));
    pairs.find(|(one, other)| is_one(*one, *other))
}
