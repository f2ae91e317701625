//! A store that a command has opened, and what is said where something of it fails.
//!
//! Promise: it is closed in order; every problem says what to do next.
//! Never: makes a tree that was not asked for.

use crate::cli::store::InTree;
use crate::spelling;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_process::store_refused::refused;
use holdfast_store::{OpenError, OpenTreeError, Recovery, Store, TransactionError, Tree};
use std::fmt::Display;
use std::path::Path;

/// A store that this process has opened, and what it is doing with it.
pub(super) struct Opened<'a> {
    pub(super) store: Store,
    pub(super) recovery: Recovery,
    pub(super) doing: &'a str,
    pub(super) directory: &'a Path,
}

impl Opened<'_> {
    /// The tree of this name, which is there.
    pub(super) fn tree(&self, name: &str) -> Outcome<Tree> {
        let found = self.store.find_tree(name).map_err(|error| self.refused(&error))?;
        found.ok_or_else(|| {
            let (why, remedy) = (format!("there is no tree `{name}`"), "`stat` names all");
            Problem::new(Exit::Usage, self.what(), why, remedy)
        })
    }

    /// The tree of this name, which is made if there is none.
    pub(super) fn tree_or_new(&self, name: &str) -> Outcome<Tree> {
        self.store.tree(name).map_err(|error| match error {
            OpenTreeError::Transaction(error) => self.refused(&error),
            error => self.failed(&error),
        })
    }

    /// Closes the store. What was committed is on the disk then.
    pub(super) fn close(self) -> Outcome<()> {
        let Opened { store, doing, directory, .. } = self;
        store.close().map_err(|error| failed(doing, directory, &error))
    }

    pub(super) fn what(&self) -> String {
        what(self.doing, self.directory)
    }

    /// Something that the machine refused.
    pub(super) fn failed(&self, error: &dyn Display) -> Problem {
        failed(self.doing, self.directory, error)
    }

    /// Why a transaction could not do what it was to do.
    pub(super) fn refused(&self, error: &TransactionError) -> Problem {
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

pub(super) fn what(doing: &str, directory: &Path) -> String {
    format!("{doing} the store in {}", directory.display())
}

pub(super) fn failed(doing: &str, directory: &Path, error: &dyn Display) -> Problem {
    let remedy = "what was reported written is; see to the disk, then do it again";
    Problem::new(Exit::Failed, what(doing, directory), error, remedy)
}

/// The bytes of an argument.
pub(super) fn bytes(doing: &str, tree: &InTree, text: &str) -> Outcome<Vec<u8>> {
    spelling::parse(text).map_err(|why| {
        let remedy = "write bytes as text, or as 0x and two hexadecimal digits for each";
        Problem::new(Exit::Usage, what(doing, &tree.store.directory), why, remedy)
    })
}

/// Why a store cannot be opened, and what to do.
pub(super) fn open_problem(doing: &str, directory: &Path, error: &OpenError) -> Problem {
    refused(what(doing, directory), directory, error)
}
