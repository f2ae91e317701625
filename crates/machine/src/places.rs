//! Where the paths of a volume are on this machine, and which of them lie inside which.
//!
//! Promise: a path lies inside a folder however it is written and by whatever way it leads there:
//! through `..`, links, and mounts of a part of the same file system elsewhere.
//! Never: opens a file, or judges a path by its letters alone.

pub(crate) mod shared;

use crate::mounts::point::check_way;
use crate::mounts::{Mount, all_mounts, leads_to, mounted_at};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Address, Config, VolumeConfig};
use std::iter::once;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and number of a file.
type Id = (u64, u64);

/// A place in a file system, whatever it is mounted at: device, and path from its root.
pub type Within = (String, PathBuf);

/// Where a path is.
#[derive(Debug)]
pub struct Place {
    /// Without links, and without `..`.
    path: PathBuf,
    /// What it is, if it is there.
    own: Option<Id>,
    /// It, and every folder above it.
    above: Vec<Id>,
    within: Option<Within>,
    /// The file systems, or parts of them, that are mounted below it.
    mounted_below: Vec<Within>,
}

impl Place {
    /// Where a path is, that may not be there yet.
    pub fn of(path: &Path, mounts: &[Mount]) -> Place {
        let path = leads_to(path);
        let above: Vec<Id> = path.ancestors().filter_map(id).collect();
        let below = mounts.iter().filter(|mount| mount.point.starts_with(&path));
        let mounted_below = below.map(|it| (it.device.clone(), it.root.clone())).collect();
        Place { own: id(&path), above, within: within(&path, mounts), mounted_below, path }
    }

    /// Whether this is the folder, or is in it.
    pub fn is_in(&self, folder: &Place) -> bool {
        let is_part = |whole: &Within| {
            self.within.as_ref().is_some_and(|it| it.0 == whole.0 && it.1.starts_with(&whole.1))
        };
        self.path.starts_with(&folder.path)
            || folder.own.is_some_and(|own| self.above.contains(&own))
            || folder.within.iter().chain(&folder.mounted_below).any(is_part)
    }
}

/// Refuses a volume that would keep, or cover, what it is made of, or a socket or power source of
/// this configuration: whoever listens or looks there would use the volume, and it could not be
/// given back.
pub fn check(name: &str, config: &Config) -> Outcome<()> {
    let volume = config.volume(name)?;
    let what = format!("looking where volume {name} lies");
    let is_free = |point: &&Path| mounted_at(point).is_none_or(|mount| !mount.is_ours());
    let point = volume.mount.as_deref().filter(is_free);
    point.map_or(Ok(()), |point| check_way(&what, point))?;
    let mounts = all_mounts();
    let place = |path: &Path| Place::of(path, &mounts);
    let home = ("home", place(&volume.home));
    let mount = volume.mount.as_deref().map(|mount| ("mount", place(mount)));
    let log = ("log", place(&volume.log));
    for (key, path) in parts(volume) {
        let part = place(path);
        let around_others = (key != "log").then_some(&log);
        for (around, folder) in [Some(&home), mount.as_ref(), around_others].into_iter().flatten() {
            if part.is_in(folder) {
                return Err(inside(name, key, path, around, &folder.path));
            }
        }
    }
    for (key, path) in config.sockets().chain(config.power_files()) {
        let used = place(path);
        if let Some((around, folder)) = once(&home).chain(&mount).find(|it| used.is_in(&it.1)) {
            return Err(inside(name, &key, path, around, &folder.path));
        }
    }
    match (&mount, &volume.mount) {
        (Some((_, at)), Some(path)) if at.own != home.1.own && at.is_in(&home.1) => {
            Err(inside(name, "mount", path, "home", &home.1.path))
        }
        _ => Ok(()),
    }
}

/// What must not lie in home or mount, with its key.
fn parts(volume: &VolumeConfig) -> impl Iterator<Item = (&'static str, &Path)> {
    let region = volume.memory.path.as_deref().map(|path| ("memory.path", path));
    let cache = volume.block_cache.as_ref().and_then(|cache| cache.path.as_deref());
    let cache = cache.map(|path| ("block_cache.path", path));
    let nbd = volume.nbd.iter().filter_map(Address::path).map(|path| ("nbd", path));
    let vhost_user = volume.vhost_user.as_deref().map(|path| ("vhost-user", path));
    let fixed = [("log", &*volume.log)].into_iter();
    fixed.chain(region).chain(cache).chain(nbd).chain(vhost_user)
}

fn inside(name: &str, key: &str, path: &Path, around: &str, folder: &Path) -> Problem {
    let what = format!("looking where volume {name} lies");
    let why = format!("{key} = {path:?} lies inside {around}, which is {}", folder.display());
    Problem::new(Exit::Usage, what, why, format!("name a place for {key} outside {around}"))
}

fn id(path: &Path) -> Option<Id> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// What the mount that a path is on shows there.
pub fn within(path: &Path, mounts: &[Mount]) -> Option<Within> {
    let around = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    // Of several at one point the last is seen.
    let nearest = around.max_by_key(|mount| mount.point.components().count())?;
    let rest = path.strip_prefix(&nearest.point).ok()?;
    Some((nearest.device.clone(), nearest.root.join(rest)))
}

#[cfg(test)]
mod tests;
