//! The service manager that started this process and keeps descriptors for the next one: systemd,
//! or whoever speaks as it does.
//!
//! Promise: what was given to it comes back under the same name when the service is started again,
//! however it ended; a socket that it opened itself is found by the same names. Without such a
//! manager nothing is kept, and nothing fails.
//! Never: decides what is worth keeping, or passes what it is told on to other processes.

use crate::raw::{close_from, inherited};
use sd_notify::NotifyState;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Variables that are for this process alone.
pub const VARIABLES: [&str; 4] = ["NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// What the manager gave to this process and nobody has taken yet, by name.
#[derive(Debug, Default)]
pub struct ServiceManager {
    given: Mutex<BTreeMap<String, OwnedFd>>,
    is_there: bool,
}

impl ServiceManager {
    /// The manager of this process. To be called once, before anything is opened: what the process
    /// was given beside is closed, so that it cannot keep a file, a mount or a lock in use.
    pub fn of_this_process() -> ServiceManager {
        close_behind(announced());
        let given = sd_notify::listen_fds_with_names().map(|given| {
            given.filter_map(|(number, name)| Some((name, inherited(number).ok()?))).collect()
        });
        let given = given.unwrap_or_else(|error| {
            tracing::warn!(%error, "descriptors of the service manager are not understood");
            BTreeMap::new()
        });
        let is_there =
            std::env::var_os(VARIABLES[0]).as_deref().is_some_and(|at| at != OsStr::new(""));
        ServiceManager { given: Mutex::new(given), is_there }
    }

    /// No manager. To be called as [`Self::of_this_process`].
    pub fn none() -> ServiceManager {
        close_behind(0);
        ServiceManager::default()
    }

    /// Whether somebody keeps what is given to [`Self::keep`].
    pub fn keeps(&self) -> bool {
        self.is_there
    }

    /// What was kept, or opened, under this name.
    pub fn take(&self, name: &str) -> Option<OwnedFd> {
        self.lock().remove(name)
    }

    /// The names of what was kept, or opened, and is not taken yet.
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Asks for a descriptor to be kept under a name that nothing else has.
    pub fn keep(&self, name: &str, descriptor: BorrowedFd<'_>) {
        self.tell(&[NotifyState::FdStore, NotifyState::FdName(name)], &[descriptor]);
    }

    /// What is kept under this name is of no use any more.
    pub fn forget(&self, name: &str) {
        drop(self.take(name));
        self.tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)], &[]);
    }

    /// The service is ready.
    pub fn ready(&self) {
        self.tell(&[NotifyState::Ready], &[]);
    }

    /// How the service is, for people: one line.
    pub fn say(&self, text: &str) {
        self.tell(&[NotifyState::Status(&text.replace('\n', " "))], &[]);
    }

    /// The service begins to end.
    pub fn stopping(&self) {
        self.tell(&[NotifyState::Stopping], &[]);
    }

    fn tell(&self, what: &[NotifyState<'_>], descriptors: &[BorrowedFd<'_>]) {
        if !self.is_there {
            return;
        }
        let told = match descriptors {
            [] => sd_notify::notify(what),
            _ => sd_notify::notify_with_fds(what, descriptors),
        };
        if let Err(error) = told {
            tracing::warn!(%error, ?what, "the service manager could not be told");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, OwnedFd>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many descriptors behind the standard streams the manager says that it gave.
fn announced() -> u32 {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    match number("LISTEN_PID") == Some(std::process::id()) {
        true => number("LISTEN_FDS").unwrap_or(0),
        false => 0,
    }
}

/// Closes what stands behind that many descriptors.
fn close_behind(count: u32) {
    if let Err(error) = close_from(3_u32.saturating_add(count)) {
        tracing::warn!(%error, "descriptors that were left open stay open");
    }
}
