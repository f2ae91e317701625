//! Why a store cannot be opened, and what to do.
//!
//! Promise: scripts know the kind by the exit code, and people are told what to do next.
//! Never: opens a store.

use crate::link;
use holdfast_client::ConnectError;
use holdfast_client::protocol::{HelloFault, Status};
use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;
use holdfast_log::{CreateError, OpenError as LogError};
use holdfast_pages::OpenError as PagesError;
use holdfast_store::OpenError;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Why the store in a directory, or a backup, cannot be had, and what to do.
pub fn refused(what: String, directory: &Path, error: &OpenError) -> Problem {
    let of_link = of_machine(error).and_then(|error| link::problem(&what, directory, error));
    of_link.unwrap_or_else(|| {
        let (exit, remedy) = advice(error);
        Problem::new(exit, what, error, remedy)
    })
}

/// What the machine said.
fn of_machine(error: &OpenError) -> Option<&io::Error> {
    match error {
        OpenError::Io(error)
        | OpenError::CreateLog(CreateError::Io(error))
        | OpenError::Log(LogError::Io(error))
        | OpenError::Pages(PagesError::Io(error)) => Some(error),
        _ => None,
    }
}

/// What a store that cannot be opened says to scripts, and to people.
fn advice(error: &OpenError) -> (Exit, &'static str) {
    match error {
        OpenError::InUse => (Exit::InUse, "end the program that has it open first"),
        OpenError::NotAStore => (Exit::Usage, "name a store's directory, or an empty one"),
        OpenError::OtherLog => {
            (Exit::Usage, "nothing was changed; name it with --log if it is in the server")
        }
        OpenError::Server(error) => served_advice(error),
        OpenError::SharedLog => {
            (Exit::Usage, "nothing was changed; correct the server's configuration")
        }
        OpenError::TakenLog => (Exit::Usage, "nothing was changed; correct --log"),
        OpenError::OlderLog { .. } => {
            (Exit::Damaged, "nothing was changed; put the newer log back, or `restore` the store")
        }
        OpenError::RemadeLog => {
            (Exit::Damaged, "nothing was changed; `restore` makes another store of what it has")
        }
        OpenError::Log(LogError::RingTooSmall { .. }) => {
            (Exit::Usage, "nothing was changed; open it with its own program")
        }
        OpenError::OtherVersion { .. } => {
            (Exit::Damaged, "nothing was changed; use the version that made it")
        }
        OpenError::Io(error) => place_advice(error),
        OpenError::Memory(_)
        | OpenError::CreateLog(_)
        | OpenError::Thread(_)
        | OpenError::Log(LogError::Io(_))
        | OpenError::Pages(PagesError::Io(_)) => {
            (Exit::Failed, "nothing is lost; see to the cause, then do it again")
        }
        _ => (Exit::Damaged, "nothing was changed; bring back what is named, from a backup"),
    }
}

/// What a place that cannot have a store says.
fn place_advice(error: &io::Error) -> (Exit, &'static str) {
    match error.kind() {
        ErrorKind::NotFound => (Exit::Usage, "make the folder that it is to be in, or correct it"),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            (Exit::Usage, "a store is a directory: name one, or one that is to be made")
        }
        ErrorKind::PermissionDenied => (Exit::Failed, "run as a user who may write there"),
        _ => (Exit::Failed, "nothing is lost; see to the cause, then do it again"),
    }
}

/// What a log that the server does not give says to scripts, and to people.
fn served_advice(error: &ConnectError) -> (Exit, &'static str) {
    match error {
        ConnectError::Unreachable(_) => {
            (Exit::NotRunning, "start the keeper, `holdfast serve`, or correct --log")
        }
        ConnectError::Refused(Status::TooManyClients) => {
            (Exit::InUse, "end the program that has the log first")
        }
        ConnectError::Refused(Status::NoService | Status::BadHello) => (
            Exit::Usage,
            "correct --log; `holdfast log make NAME` makes one of the configuration's",
        ),
        ConnectError::Refused(Status::OtherVersion)
        | ConnectError::Protocol(HelloFault::Version { .. }) => {
            (Exit::Damaged, "use the version of the server")
        }
        ConnectError::Refused(Status::NotAllowed) => {
            (Exit::Failed, "do it as a user that the log's allow_uids names")
        }
        ConnectError::Protocol(_) => (Exit::Usage, "correct --log"),
        _ => (Exit::Failed, "nothing is lost; see `holdfast status`, then do it again"),
    }
}

#[cfg(test)]
mod tests;
