//! The front end of a disk that the server has.
//!
//! Promise: serves the disk's sockets as a client of the server until it is told to end; whatever
//! becomes of the server meanwhile, users only wait. Without a keeper it ends when its last user
//! has gone, and so lets the server end too.
//! Never: has anything that its death could lose.

use super::front::Reporter;
use super::users::{Users, tls_of};
use crate::config::{Address, DiskConfig, Protocol};
use crate::exit::Exit;
use crate::keeper::listeners::are_in_use;
use crate::orders::{Orders, Report, Server, Task};
use crate::problem::{Outcome, Problem};
use holdfast_client::{BlocksClient, ConnectError};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often a front end without a keeper looks whether it still has users.
const ORPHAN_LOOK: Duration = Duration::from_millis(200);

/// Does what the keeper ordered.
pub(super) fn obey(orders: &Orders, reporter: &mut Reporter) -> Outcome<()> {
    match (orders.task, &orders.disk, &orders.server) {
        (Task::Serve, Some(disk), Some(server)) => serve(orders, disk, server, reporter),
        // Nothing of a disk waits in its front end.
        _ => Ok(()),
    }
}

fn serve(
    orders: &Orders,
    disk: &DiskConfig,
    server: &Server,
    reporter: &mut Reporter,
) -> Outcome<()> {
    let failed = |error: io::Error| {
        let what = format!("serving disk {}", orders.name);
        Problem::new(Exit::Failed, what, error, "the keeper starts another front end")
    };
    let users = Users::of(None, orders, tls_of(orders)?).map_err(failed)?;
    let blocks = connect(&orders.name, server)?;
    let (keeper, sockets, stop) =
        (reporter.to_keeper().map_err(failed)?, disk.sockets(), users.stop());
    thread::spawn(move || end_with_keeper(&keeper, &sockets, &stop));
    let (recovery, verdict) = ("taken up".to_owned(), server.verdict.clone());
    reporter.say(&Report::Ready { recovery, verdict });
    users.serve_disk(&orders.name, &blocks);
    Ok(())
}

/// Ends the use of the disk once there is neither a keeper nor a user: nobody else would.
fn end_with_keeper(keeper: &File, sockets: &[(Protocol, Address)], stop: &AtomicBool) {
    let mut polled = [PollFd::new(keeper, PollFlags::empty())];
    while !matches!(poll(&mut polled, None), Ok(1..)) {}
    while are_in_use(sockets) {
        thread::sleep(ORPHAN_LOOK);
    }
    stop.store(true, Ordering::Relaxed);
}

fn connect(name: &str, server: &Server) -> Outcome<BlocksClient> {
    BlocksClient::connect(&server.socket, name).map_err(|error| {
        let exit = match error {
            ConnectError::Unreachable(_) | ConnectError::Memory(_) => Exit::Failed,
            _ => Exit::Usage,
        };
        let remedy = "see `holdfast status` for server and disk; then start the keeper again";
        Problem::new(exit, format!("reaching disk {name}"), error, remedy)
    })
}
