//! Parts of one volume or disk that a service manager keeps.
//!
//! Promise: they are kept until this is dropped; sockets that are made anew are kept in the place
//! of those that were there.
//! Never: decides which parts.

pub(crate) mod held;
pub(crate) mod kept_disks;
pub(crate) mod part_names;
pub(crate) mod remains;
pub(crate) mod settings;

use crate::kept::part_names::socket_name;
use crate::listeners::Listeners;
use holdfast_machine::service_manager::ServiceManager;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Keeps the parts of one volume until it is dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) manager: Arc<ServiceManager>,
    pub(crate) names: Vec<String>,
}

impl Kept {
    /// Has these sockets kept in the place of those that were there.
    pub(crate) fn keep_anew(&self, whose: &str, listeners: &Listeners, places: &[usize]) {
        let own = listeners.own_descriptors().filter(|(place, _)| places.contains(place));
        for (place, socket) in own {
            self.replace(&socket_name(whose, place), socket);
        }
    }

    /// Has this kept in the place of what was there by this name.
    pub(crate) fn replace(&self, name: &str, descriptor: BorrowedFd<'_>) {
        self.manager.forget(name);
        self.manager.keep(name, descriptor);
    }

    pub(crate) fn keep(&mut self, name: String, descriptor: BorrowedFd<'_>) {
        self.manager.keep(&name, descriptor);
        self.names.push(name);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.names.iter().for_each(|name| self.manager.forget(name));
    }
}
