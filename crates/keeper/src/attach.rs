//! Making a volume ready to be served: paths, locks, the mount and the sockets.
//!
//! Promise: home and log are open and locked before the mount covers anything; every refusal names
//! the path and says what to do; a refusal leaves nothing mounted.
//! Never: touches what is in home, log or region.

use crate::handover::Handover;
use crate::kept::Kept;
use crate::kept::held::Held;
use crate::kept::settings;
use crate::listeners::{Listeners, refuse_connected};
use crate::orders::{Orders, Server, Task};
use crate::whose::{front_end_of, refuse_kept_by_another};
use holdfast_attach::foreseen::Decided;
use holdfast_attach::homes::{refuse_nested, refuse_strange};
use holdfast_attach::logs::take_log_of;
use holdfast_attach::observe::refuse_poisoned;
use holdfast_attach::users::refuse_in_use;
use holdfast_config::claims::PowerSource;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Address, Config, Protocol, VolumeConfig, Way};
use holdfast_front::ublk;
use holdfast_io::real::RealFiles;
use holdfast_io::{Shown, private};
use holdfast_machine::lock::take_home;
use holdfast_machine::mounts::point::MountPoint;
use holdfast_machine::mounts::served::refuse_served;
use holdfast_machine::mounts::{Mount, mounted_at, our_mount_at, unmount, users_text};
use holdfast_machine::service_manager::ServiceManager;
use rustix::fs::{FileType, fstat};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// Opens and locks what the volume is made of, and looks whether anything refuses it; nothing is
/// mounted yet, or noted.
pub(crate) fn take(name: &str, config: &Config) -> Outcome<(Held, Option<Decided>)> {
    let (what, volume) = (format!("attaching volume {name}"), config.volume(name)?);
    let home = take_home_to_serve(&what, name, config)?;
    let log = match volume.way {
        Way::Direct => Some(take_log_of(name, volume)?),
        Way::Queue => None,
    };
    refuse_poisoned(&what, name, &volume.medium())?;
    // A log that is not there is the business of whoever opens it.
    let look = |files: RealFiles| Decided::look(name, (volume, &home), &files, volume.way);
    let decided = log_of(volume).map(look).transpose()?;
    let held = Held {
        home: Some(home),
        log,
        settings: settings::written(volume),
        fuse: None,
        listeners: Listeners::default(),
        handover: None,
        kept: None,
        was_served: false,
    };
    Ok((held, decided))
}

/// Brings log and home together, the last before they are used.
pub(crate) fn note(
    name: &str,
    volume: &VolumeConfig,
    held: &Held,
    decided: &Decided,
) -> Outcome<()> {
    match (&held.home, log_of(volume)) {
        (Some(home), Some(files)) => decided.note(name, (volume, home), &files),
        _ => Ok(()),
    }
}

fn log_of(volume: &VolumeConfig) -> Option<RealFiles> {
    private::directory_there(&volume.log).ok().map(RealFiles::from_fd)
}

/// Takes a home that nobody else has, uses, or keeps a part of: for whoever attaches it, or gives
/// it a log.
pub fn take_free_home(what: &str, name: &str, config: &Config) -> Outcome<OwnedFd> {
    let volume = config.volume(name)?;
    check_home_is_bare(&volume.home, what)?;
    refuse_nested(what, name, config)?;
    let home = take_home(&volume.home)?;
    refuse_in_use(what, (&volume.home, &home))?;
    refuse_strange(what, (&volume.home, &home))?;
    Ok(home)
}

/// [`take_free_home`], where the volume can be opened to its users too.
pub fn take_home_to_serve(what: &str, name: &str, config: &Config) -> Outcome<OwnedFd> {
    let volume = config.volume(name)?;
    clear_mount_point(name, volume, what)?;
    let home = take_free_home(what, name, config)?;
    check_ways(name, config, &home, what)?;
    Ok(home)
}

/// What is refused for the ways to the volume, whatever is in it.
pub fn check_ways(name: &str, config: &Config, home: &OwnedFd, what: &str) -> Outcome<()> {
    holdfast_machine::places::check(name, config)?;
    let volume = config.volume(name)?;
    check_users(volume, home, what)?;
    check_driver(&format!("volume {name}"), volume.ublk)?;
    match &volume.mount {
        Some(point) => MountPoint::find(what, point, Some(home)).map(drop),
        None => Ok(()),
    }
}

/// Mounts what was taken unless it is mounted, and listens for clients.
pub(crate) fn open_to_users(
    name: &str,
    volume: &VolumeConfig,
    taken: Held,
    manager: &Arc<ServiceManager>,
) -> Outcome<Held> {
    let whose = format!("volume {name}");
    let (listeners, handover) = listen(&whose, volume.sockets(), manager)?;
    let fuse = match (taken.fuse, volume.mount.as_deref()) {
        (None, Some(point)) => {
            let over = MountPoint::find(&format!("attaching {whose}"), point, taken.home.as_ref())?;
            Some(Arc::new(over.mount(&whose, name)?))
        }
        (fuse, _) => fuse,
    };
    let held = Held { fuse, listeners, handover, ..taken };
    Ok(Held { kept: Some(Kept::new(manager, &whose, &held)), ..held })
}

/// Listens for clients, and prepares to hand their connections on.
pub(crate) fn listen(
    whose: &str,
    sockets: Vec<(Protocol, Address)>,
    manager: &ServiceManager,
) -> Outcome<(Listeners, Option<Handover>)> {
    let handover = (!sockets.is_empty()).then(Handover::new).transpose();
    let handover = handover.map_err(|error| {
        let what = format!("attaching {whose}: preparing to hand connections on");
        Problem::new(Exit::Failed, what, error, "see whether descriptors ran out")
    })?;
    Ok((Listeners::bind(whose, sockets, manager)?, handover))
}

/// Takes a volume away from its users. Somebody may have unmounted it already.
pub(crate) fn end_use(
    name: &str,
    volume: &VolumeConfig,
    mount: Option<Mount>,
    force: bool,
) -> Outcome<()> {
    if !force {
        refuse_connected(&format!("unmounting volume {name}"), volume)?;
    }
    mount.map_or(Ok(()), |mount| unmount(&mount, force))
}

/// Only a disk can be reached through a socket or be a block device, and it needs no mount.
fn check_users(volume: &VolumeConfig, home: &OwnedFd, what: &str) -> Outcome<()> {
    let found =
        fstat(home).map_err(|error| Problem::new(Exit::Failed, what, error, "try again"))?;
    let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    let of_device = volume.ublk.map(|_| "ublk");
    let key = volume.sockets().first().map(|(protocol, _)| protocol.word()).or(of_device);
    match key.filter(|_| is_directory) {
        None => Ok(()),
        Some(key) => {
            let why = format!("{key} is set, and home {} is a directory", volume.home.display());
            let remedy =
                format!("set mount instead of {key}, or name a file or a block device as home");
            Err(Problem::new(Exit::Usage, what, why, remedy))
        }
    }
}

/// A block device needs what kernel and program may lack.
pub(crate) fn check_driver(whose: &str, device: Option<u32>) -> Outcome<()> {
    device.map_or(Ok(()), |_| ublk::check_driver()).map_err(|error| {
        let remedy = match error {
            ublk::DeviceError::NotBuilt => "build it with `cargo build --release --features ublk`",
            _ => "`modprobe ublk_drv`, with Linux 6.5 or later; or leave ublk out",
        };
        Problem::new(Exit::Usage, format!("attaching {whose}"), error, remedy)
    })
}

/// What the front ends of the volume are told.
pub(crate) fn orders(
    name: &str,
    volume: &VolumeConfig,
    power: PowerSource,
    server: Option<Server>,
) -> Orders {
    Orders {
        name: name.to_owned(),
        volume: Some(volume.clone()),
        disk: None,
        power,
        task: Task::Serve,
        resume: false,
        server,
        sockets: Vec::new(),
        handover: None,
        pulse_fd: None,
        lease_fd: None,
        term: None,
        ends_with_keeper: false,
    }
}

/// Takes the mount of a volume away that no front end ever served, and the block device.
pub(crate) fn unmount_unserved(orders: &Orders) {
    if let Some(Err(error)) = orders.ublk().map(|device| ublk::remove(&device)) {
        tracing::error!(%error, "the block device of {} stays", orders.whose());
    }
    let ended = orders.volume.as_ref().map(|volume| {
        let mount = volume.mount.as_deref().and_then(|at| our_mount_at(at, &orders.name));
        end_use(&orders.name, volume, mount, true)
    });
    if let Some(Err(problem)) = ended {
        tracing::error!("{problem}");
    }
}

/// The mount point has to be free. A mount of ours whose front end is dead is taken away: nothing
/// can come of it any more, and what it acknowledged is in region and log.
fn clear_mount_point(name: &str, volume: &VolumeConfig, what: &str) -> Outcome<()> {
    let Some(mount) = volume.mount.as_deref() else { return Ok(()) };
    let Some(found) = mounted_at(mount) else { return Ok(()) };
    let in_use = |why: String, remedy: String| Err(Problem::new(Exit::InUse, what, why, remedy));
    let point = mount.display();
    if !found.is_ours() {
        // A home that is the root of a file system may be covered by its own volume.
        return match *mount == volume.home {
            true => Ok(()),
            false => in_use(
                format!(
                    "the mount point {point} is in use by a file system of type {}",
                    Shown::name(&found.kind)
                ),
                format!("unmount it, or set another mount for volume {name}"),
            ),
        };
    }
    if found.source != name {
        return in_use(
            format!("volume {} is mounted at {point}", found.whose()),
            format!("umount it, or set another mount for volume {name}"),
        );
    }
    if let Some(pid) = front_end_of(volume) {
        refuse_kept_by_another(what, Some(pid))?;
        return in_use(
            format!("front end {pid} goes on serving it at {point}, and its keeper is gone"),
            format!(
                "nothing is lost; when its users ({}) can pause: `holdfast umount {name}`, then \
                 `holdfast mount {name}`, or `holdfast serve` where no keeper runs",
                users_text(mount)
            ),
        );
    }
    refuse_served(what, &found, None)?;
    tracing::warn!(volume = name, "taking away a mount whose front end and keeper are dead");
    unmount(&found, true)
}

/// A home under a mount of ours is the volume itself, seen through its own front end.
fn check_home_is_bare(home: &Path, what: &str) -> Outcome<()> {
    match mounted_at(home).filter(|mount| mount.is_ours()) {
        None => Ok(()),
        Some(mount) => Err(Problem::new(
            Exit::InUse,
            what,
            format!("home {} is already attached as volume {}", home.display(), mount.whose()),
            format!("`holdfast umount {}` first", mount.whose()),
        )),
    }
}
