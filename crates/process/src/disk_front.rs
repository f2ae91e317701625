//! The front end of a disk in durable memory: a client of the server's, or with the region itself.
//!
//! Promise: serves the disk's users until it is told to end; whatever becomes of the server
//! meanwhile, users only wait. Without a keeper it ends when its last user has gone, and so lets
//! the server end too.
//! Never: has anything that its death could lose.

use crate::disk::take_up;
use crate::life::{Reporter, unless_away};
use crate::users::{Seen, Users, tls_of};
use holdfast_client::protocol::Status;
use holdfast_client::{BlocksClient, ConnectError};
use holdfast_config::DiskConfig;
use holdfast_config::claims::Verdict;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_front::fuse::{Cache, DiskTree, FuseConfig, ListenConfig};
use holdfast_front::ublk::{self, UblkConfig};
use holdfast_io::Blocks;
use holdfast_keeper::listeners::are_in_use;
use holdfast_keeper::orders::{Orders, Report, Server, Task};
use holdfast_machine::mounts::{disk_source, unmount_idle};
use holdfast_machine::raw::inherited;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often a front end without a keeper looks whether it still has users.
const ORPHAN_LOOK: Duration = Duration::from_millis(200);

/// What one user writes the others read, so the kernel keeps nothing. No request waits for a
/// device, so one thread is enough.
const FUSE: FuseConfig = FuseConfig { listen: ListenConfig { threads: 1 }, cache: Cache::Nowhere };

/// Does what the keeper ordered.
pub(super) fn obey(orders: &Orders, fuse_fd: Option<i32>, reporter: &mut Reporter) -> Outcome<()> {
    match (orders.task, &orders.disk) {
        (Task::Serve, Some(disk)) => serve(orders, disk, fuse_fd, reporter),
        // Nothing of a disk waits in its front end.
        _ => remove_device(orders.ublk()),
    }
}

/// Ends what a dead front end has left in the kernel.
pub(super) fn remove_device(device: Option<UblkConfig>) -> Outcome<()> {
    let Some(device) = device else { return Ok(()) };
    ublk::remove(&device).map_err(|error| {
        let what = format!("ending the block device of {}", device.name);
        Problem::new(Exit::Failed, what, error, "end its use and try again")
    })
}

fn serve(
    orders: &Orders,
    disk: &DiskConfig,
    fuse_fd: Option<i32>,
    reporter: &mut Reporter,
) -> Outcome<()> {
    let failed = |error: io::Error| {
        let what = format!("serving disk {}", orders.name);
        Problem::caused(Exit::Failed, what, error, "the keeper starts another front end")
    };
    let (fuse, tls) = (fuse_fd.map(inherited).transpose(), tls_of(orders)?);
    let users = fuse.and_then(|fuse| Users::of(fuse, orders, tls)).map_err(failed)?;
    let (blocks, verdict) = reach(orders, disk)?;
    let blocks = &*blocks;
    let (keeper, stop) = (reporter.to_keeper().map_err(failed)?, users.stop());
    let (disk, name) = (disk.clone(), orders.name.clone());
    let watch = move || end_without_keeper(&keeper, &name, &disk, &stop);
    thread::Builder::new().name("orphan".into()).spawn(watch).map_err(failed)?;
    if orders.resume {
        users.ask_again();
    }
    let ready =
        || reporter.say(&Report::Ready { recovery: "taken up".to_owned(), verdict, armed: None });
    // A disk in memory never waits for room.
    let tree = DiskTree::new(&orders.name, blocks);
    let seen = Seen { tree: &tree, blocks: Some(blocks), let_go: &|| {} };
    let served = users.serve(&orders.name, &seen, &FUSE, ready);
    served.map_err(|error| failed(io::Error::other(error)))
}

/// Ends the use of the disk once there is neither a keeper nor a user: nobody else would.
fn end_without_keeper(keeper: &File, name: &str, disk: &DiskConfig, stop: &AtomicBool) {
    let mut polled = [PollFd::new(keeper, PollFlags::empty())];
    while !matches!(poll(&mut polled, None), Ok(1..)) {}
    while has_users(name, disk) {
        thread::sleep(ORPHAN_LOOK);
    }
    stop.store(true, Ordering::Relaxed);
}

/// Whether anybody uses the disk. A mount that nobody uses any more is taken away.
fn has_users(name: &str, disk: &DiskConfig) -> bool {
    let is_mounted =
        || disk.mount.as_deref().is_some_and(|at| !unmount_idle(at, &disk_source(name)));
    are_in_use(&disk.sockets()) || disk.ublk.is_some_and(ublk::is_in_use) || is_mounted()
}

/// The disk, and what its acknowledgements mean.
fn reach(orders: &Orders, disk: &DiskConfig) -> Outcome<(Box<dyn Blocks>, Verdict)> {
    match &orders.server {
        Some(server) => {
            let client = connect(&orders.name, server)?;
            Ok((Box::new(client), server.verdict.clone()))
        }
        None => {
            let (vdisk, verdict) = take_up(&orders.name, disk, orders.power)?;
            Ok((Box::new(vdisk), verdict))
        }
    }
}

fn connect(name: &str, server: &Server) -> Outcome<BlocksClient> {
    BlocksClient::connect(&server.socket, name).map_err(|error| {
        let exit = match &error {
            ConnectError::Unreachable(_) | ConnectError::Memory(_) => Exit::Failed,
            // Others have the places, or the server is just being replaced: both pass.
            ConnectError::Refused(Status::TooManyClients) => Exit::InUse,
            ConnectError::Refused(Status::NoService) => Exit::Failed,
            _ => Exit::Usage,
        };
        let remedy = "see `holdfast status` for server and disk; the keeper tries again";
        let what = format!("reaching disk {name}");
        unless_away(&error, Problem::new(exit, what, &error, remedy))
    })
}
