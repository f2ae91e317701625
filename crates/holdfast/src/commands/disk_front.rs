//! The front end of a disk that the server has.
//!
//! Promise: serves the disk's sockets as a client of the server until it is told to end; whatever
//! becomes of the server meanwhile, users only wait.
//! Never: has anything that its death could lose.

use super::users::Users;
use crate::exit::Exit;
use crate::orders::{Orders, Report, Server, Task};
use crate::problem::{Outcome, Problem};
use holdfast_client::{BlocksClient, ConnectError};
use std::fmt::Display;

/// Does what the keeper ordered.
pub(super) fn obey(orders: &Orders, say: &mut dyn FnMut(&Report)) -> Outcome<()> {
    match (orders.task, &orders.server) {
        (Task::Serve, Some(server)) => serve(orders, server, say),
        // Nothing of a disk waits in its front end.
        _ => Ok(()),
    }
}

fn serve(orders: &Orders, server: &Server, say: &mut dyn FnMut(&Report)) -> Outcome<()> {
    let failed = |error: &dyn Display| {
        let what = format!("serving disk {}", orders.name);
        Problem::new(Exit::Failed, what, error, "the keeper starts another front end")
    };
    let users = Users::of(None, orders).map_err(|error| failed(&error))?;
    let disk = connect(&orders.name, server)?;
    let (recovery, verdict) = ("taken up".to_owned(), server.verdict.clone());
    say(&Report::Ready { recovery, verdict });
    users.serve_disk(&orders.name, &disk);
    Ok(())
}

fn connect(name: &str, server: &Server) -> Outcome<BlocksClient> {
    BlocksClient::connect(&server.socket, name).map_err(|error| {
        let exit = match error {
            ConnectError::Unreachable(_) | ConnectError::Memory(_) => Exit::Failed,
            _ => Exit::Usage,
        };
        let remedy =
            "see `holdfast status` for the server and the disk; then start the keeper again";
        Problem::new(exit, format!("reaching disk {name}"), error, remedy)
    })
}
