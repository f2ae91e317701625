//! `holdfast store open | get | put | delete | scan | load | stat | verify | trim |
//! backup | restore | bench`.
//!
//! Promise: works on any store that nobody has open, and closes it in order; what is reported
//! written is on the disk; every problem says what to do next.
//! Never: makes a store, but for `open` and `restore`; makes a tree, but for `put` and `load`.

mod backup;
mod bank;
mod bench;
mod delete;
mod door;
mod get;
mod load;
mod open;
mod put;
mod restore;
mod scan;
mod stat;
mod trim;
mod verify;

use self::door::Door;
use crate::cli::store::{InTree, StoreArgs, StoreCommand};
use crate::commands::link;
use crate::output::Output;
use crate::spelling;
use holdfast_client::ConnectError;
use holdfast_client::protocol::{HelloFault, Status};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_log::{CreateError, OpenError as LogError};
use holdfast_pages::OpenError as PagesError;
use holdfast_store::{OpenError, OpenTreeError, Recovery, Store, TransactionError, Tree};
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Does what is asked of stores.
pub(crate) fn store(config: &Path, command: StoreCommand, output: Output) -> Outcome<()> {
    let door = Door { config };
    match command {
        StoreCommand::Open { store } => open::open(door, &store, output),
        StoreCommand::Get { tree, key } => get::get(door, &tree, &key, output),
        StoreCommand::Put { tree, key, value } => put::put(door, &tree, &key, &value, output),
        StoreCommand::Delete { tree, key } => delete::delete(door, &tree, &key, output),
        StoreCommand::Scan { tree, part } => scan::scan(door, &tree, &part, output),
        StoreCommand::Load { tree, file } => load::load(door, &tree, file.as_deref(), output),
        StoreCommand::Stat { store } => stat::stat(door, &store, output),
        StoreCommand::Verify { store, reclaim } => verify::verify(door, &store, reclaim, output),
        StoreCommand::Trim { store, keep } => trim::trim(door, &store, keep, output),
        StoreCommand::Backup { store, to, forward } => {
            backup::backup(door, &store, &to, forward, output)
        }
        StoreCommand::Restore { from, to, at, log } => {
            restore::restore(door, &from, &StoreArgs { directory: to, log }, at, output)
        }
        StoreCommand::Bench { directory, seconds } => bench::bench(&directory, seconds, output),
    }
}

/// A store that this process has opened, and what it is doing with it.
struct Opened<'a> {
    store: Store,
    recovery: Recovery,
    doing: &'a str,
    directory: &'a Path,
}

impl Opened<'_> {
    /// The tree of this name, which is there.
    fn tree(&self, name: &str) -> Outcome<Tree> {
        let found = self.store.find_tree(name).map_err(|error| self.refused(&error))?;
        found.ok_or_else(|| {
            let (why, remedy) = (format!("there is no tree `{name}`"), "`stat` names all");
            Problem::new(Exit::Usage, self.what(), why, remedy)
        })
    }

    /// The tree of this name, which is made if there is none.
    fn tree_or_new(&self, name: &str) -> Outcome<Tree> {
        self.store.tree(name).map_err(|error| match error {
            OpenTreeError::Transaction(error) => self.refused(&error),
            error => self.failed(&error),
        })
    }

    /// Closes the store. What was committed is on the disk then.
    fn close(self) -> Outcome<()> {
        let Opened { store, doing, directory, .. } = self;
        store.close().map_err(|error| failed(doing, directory, &error))
    }

    fn what(&self) -> String {
        what(self.doing, self.directory)
    }

    /// Something that the machine refused.
    fn failed(&self, error: &dyn Display) -> Problem {
        failed(self.doing, self.directory, error)
    }

    /// Why a transaction could not do what it was to do.
    fn refused(&self, error: &TransactionError) -> Problem {
        let (exit, remedy) = match error {
            TransactionError::KeyTooLarge | TransactionError::ValueTooLarge => {
                (Exit::Usage, "nothing was changed; use a shorter one")
            }
            TransactionError::Page(_) | TransactionError::Corrupt { .. } => {
                (Exit::Damaged, "nothing was changed; other pages can be read")
            }
            _ => return self.failed(error),
        };
        Problem::new(exit, self.what(), error, remedy)
    }
}

fn what(doing: &str, directory: &Path) -> String {
    format!("{doing} the store in {}", directory.display())
}

fn failed(doing: &str, directory: &Path, error: &dyn Display) -> Problem {
    let remedy = "what was reported written is; see to the disk, then do it again";
    Problem::new(Exit::Failed, what(doing, directory), error, remedy)
}

/// The bytes of an argument.
fn bytes(doing: &str, tree: &InTree, text: &str) -> Outcome<Vec<u8>> {
    spelling::parse(text).map_err(|why| {
        let remedy = "write bytes as text, or as 0x and two hexadecimal digits for each";
        Problem::new(Exit::Usage, what(doing, &tree.store.directory), why, remedy)
    })
}

/// Why a store cannot be opened, and what to do.
fn open_problem(doing: &str, directory: &Path, error: &OpenError) -> Problem {
    refused(what(doing, directory), directory, error)
}

/// Why the store in a directory, or a backup, cannot be had, and what to do.
pub(super) fn refused(what: String, directory: &Path, error: &OpenError) -> Problem {
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
