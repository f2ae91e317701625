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
use crate::output::Output;
use crate::spelling;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_process::store_refused::refused;
use holdfast_store::{OpenError, OpenTreeError, Recovery, Store, TransactionError, Tree};
use std::fmt::Display;
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
