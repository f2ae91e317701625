//! Taking a mount away.
//!
//! Promise: what is taken away is the mount that was meant, by what the kernel knows it by, at
//! the place where it is now; a name that leads elsewhere by now, by whomever, is not asked, and
//! what got its number after it stays.
//! Never: follows a link, or says that a mount is gone that is not.

use super::table::{Mount, all_mounts, our_mount_at, users_text};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::Shown;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How often a place is looked for that moves while it is.
const LOOKS: usize = 64;

/// Unmounts. With `force` the connection is cut: programs that use the mount get errors, and the
/// name is free at once. What they were told is stable stays stable either way.
pub fn unmount(mount: &Mount, force: bool) -> Outcome<()> {
    let what = || format!("unmounting {}", mount.point.display());
    let failed = |error: Errno| match covered_by(mount) {
        None => Problem::new(Exit::Failed, what(), error, "unmounting needs root"),
        Some(over) => {
            let remedy = format!("unmount that first: `umount {}`", over.point.display());
            Problem::new(Exit::InUse, what(), covered_text(&over), remedy)
        }
    };
    if !force {
        return at(mount, UnmountFlags::empty()).map_err(|error| match error {
            Errno::BUSY if covered_by(mount).is_none() => {
                let why = format!("it is in use by {}", users_text(&mount.point));
                Problem::new(Exit::InUse, what(), why, "stop them and try again, or use --force")
            }
            error => failed(error),
        });
    }
    // The first call ends the connection and is refused while files are open, the second one takes
    // the name away; a refusal of the first is no reason to leave the name.
    let _ = at(mount, UnmountFlags::FORCE);
    at(mount, UnmountFlags::DETACH).map_err(failed)
}

/// Takes away what is mounted here from this source if no program uses it; true if nothing is left.
pub fn unmount_idle(point: &Path, source: &str) -> bool {
    our_mount_at(point, source).is_none_or(|mount| unmount(&mount, false).is_ok())
}

/// What is mounted over this one, or over a folder on the way to it, so that nobody gets to it.
pub fn covered_by(mount: &Mount) -> Option<Mount> {
    let mounts = all_mounts();
    let now = mounts.iter().find(|it| mount.is(it))?;
    let there = Spot::root_of(now).ok()?.1;
    let number = number_of(&there).filter(|number| *number != mount.number)?;
    mounts.iter().find(|it| it.number == number && it.point != Path::new("/")).cloned()
}

/// For people.
pub fn covered_text(over: &Mount) -> String {
    let (kind, point) = (Shown::name(&over.kind), over.point.display());
    format!("a file system of type {kind} is mounted over it, at {point}")
}

/// Unmounts it where it is. One that is nowhere any more is unmounted.
fn at(mount: &Mount, flags: UnmountFlags) -> Result<(), Errno> {
    for _ in 0..LOOKS {
        let Some(now) = all_mounts().into_iter().find(|it| mount.is(it)) else {
            return Ok(());
        };
        // A folder on the way may have another name before it is open.
        let Ok(spot) = Spot::of(&now) else { continue };
        if let Some(spot) = spot {
            return rustix::mount::unmount(spot.path(), flags | UnmountFlags::NOFOLLOW);
        }
    }
    Err(Errno::BUSY)
}

/// The open folder in which something is mounted, and its name there: nobody can change that name
/// here as long as it is mounted.
struct Spot {
    folder: OwnedFd,
    name: OsString,
}

impl Spot {
    /// Where it is; `None` if something else is there, or over it.
    fn of(mount: &Mount) -> Result<Option<Spot>, Errno> {
        let (spot, root) = Spot::root_of(mount)?;
        Ok((number_of(&root) == Some(mount.number)).then_some(spot))
    }

    /// Where it should be, and what is seen there.
    fn root_of(mount: &Mount) -> Result<(Spot, OwnedFd), Errno> {
        let (Some(folder), Some(name)) = (mount.point.parent(), mount.point.file_name()) else {
            return Err(Errno::INVAL);
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let folder = open(folder, flags | OFlags::DIRECTORY, Mode::empty())?;
        // This asks no server: one that hangs or is gone has its mount taken away as well.
        let root = openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        Ok((Spot { folder, name: name.to_owned() }, root))
    }

    /// A way to it that goes through the open folder.
    fn path(&self) -> PathBuf {
        let folder = self.folder.as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{folder}")).join(&self.name)
    }
}

/// The number of the mount that an open file is on.
fn number_of(file: &impl AsFd) -> Option<u64> {
    let told = format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd());
    let told = std::fs::read_to_string(told).ok()?;
    told.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests;
