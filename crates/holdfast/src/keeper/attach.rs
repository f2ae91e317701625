//! Making a volume ready to be served: paths, locks and the mount.
//!
//! Promise: home and log are open and locked before the mount covers anything; every refusal names
//! the path and says what to do; a refusal leaves nothing mounted.
//! Never: touches what is in home, log or region.

use super::lock::{take_directory, take_home};
use super::mounts::{mounted_at, unmount_at, users_text};
use super::spawn::Held;
use crate::claims::PowerSource;
use crate::config::{VolumeConfig, Way};
use crate::exit::Exit;
use crate::observe::observe;
use crate::orders::{Orders, Server, Task};
use crate::problem::{Outcome, Problem};
use holdfast_front::fuse;
use std::path::Path;

/// Opens and locks what the volume is made of; nothing is mounted yet.
pub(crate) fn take(name: &str, volume: &VolumeConfig) -> Outcome<Held> {
    let what = format!("attaching volume {name}");
    clear_mount_point(name, volume, &what)?;
    check_home_is_bare(&volume.home, &what)?;
    let home = take_home(&volume.home)?;
    let log = match volume.way {
        Way::Direct => Some(take_directory("log", &volume.log)?),
        Way::Queue => None,
    };
    Ok(Held { home, log, fuse: None })
}

/// Mounts what was taken.
pub(crate) fn mount(name: &str, volume: &VolumeConfig, taken: Held) -> Outcome<Held> {
    let options = fuse::MountOptions { name: name.to_owned() };
    let fuse = fuse::mount(&volume.mount, &options).map_err(|error| {
        let exit = match error {
            fuse::MountError::NotADirectory(_) => Exit::Usage,
            _ => Exit::Failed,
        };
        Problem::new(exit, format!("attaching volume {name}"), error, "nothing was changed")
    })?;
    Ok(Held { fuse: Some(fuse), ..taken })
}

/// What the front ends of the volume are told.
pub(crate) fn orders(
    name: &str,
    volume: &VolumeConfig,
    power: PowerSource,
    server: Option<Server>,
) -> Orders {
    let (name, volume) = (name.to_owned(), volume.clone());
    let task = Task::Serve;
    Orders { name, volume, power, task, resume: false, server, ends_with_keeper: false }
}

/// Takes the mount of a volume away that no front end ever served.
pub(crate) fn unmount_unserved(orders: &Orders) {
    if let Err(problem) = unmount_at(&orders.volume.mount, true) {
        tracing::error!("{problem}");
    }
}

/// The mount point has to be free. A mount of ours whose front end is dead is taken away: nothing
/// can come of it any more, and what it acknowledged is in region and log.
fn clear_mount_point(name: &str, volume: &VolumeConfig, what: &str) -> Outcome<()> {
    let Some(found) = mounted_at(&volume.mount) else { return Ok(()) };
    let in_use = |why: String, remedy: String| Err(Problem::new(Exit::InUse, what, why, remedy));
    let point = volume.mount.display();
    if !found.is_ours() {
        // A home that is the root of a file system may be covered by its own volume.
        return match volume.mount == volume.home {
            true => Ok(()),
            false => in_use(
                format!(
                    "the mount point {point} is in use by a file system of type {}",
                    found.kind
                ),
                format!("unmount it, or set another mount for volume {name}"),
            ),
        };
    }
    if found.source != name {
        return in_use(
            format!("volume {} is mounted at {point}", found.source),
            format!("umount it, or set another mount for volume {name}"),
        );
    }
    if let Some(pid) = observe(&volume.medium()).ok().and_then(|seen| seen.front_end_pid) {
        return in_use(
            format!("front end {pid} goes on serving it at {point}, and its keeper is gone"),
            format!(
                "nothing is lost; when its users ({}) can pause: `holdfast umount {name}`, then \
                 `holdfast mount {name}`",
                users_text(&volume.mount)
            ),
        );
    }
    tracing::warn!(volume = name, "taking away a mount whose front end and keeper are dead");
    unmount_at(&volume.mount, true)
}

/// A home under a mount of ours is the volume itself, seen through its own front end.
fn check_home_is_bare(home: &Path, what: &str) -> Outcome<()> {
    match mounted_at(home).filter(|mount| mount.is_ours()) {
        None => Ok(()),
        Some(mount) => Err(Problem::new(
            Exit::InUse,
            what,
            format!("home {} is already attached as volume {}", home.display(), mount.source),
            format!("`holdfast umount {}` first", mount.source),
        )),
    }
}
