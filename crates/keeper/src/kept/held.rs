//! The descriptors that outlive a front end.
//!
//! Promise: they stay open from one front end to the next, until nobody is to come any more.
//! Never: knows a process.

use crate::handover::Handover;
use crate::kept::Kept;
use crate::listeners::Listeners;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The descriptors that outlive a front end.
#[derive(Debug)]
pub(crate) struct Held {
    /// The home, opened before the mount covered it. A disk has none.
    pub home: Option<OwnedFd>,
    /// The log directory, unless the server has it.
    pub log: Option<OwnedFd>,
    /// How it is configured, to be read by a keeper that takes it up.
    pub settings: Option<OwnedFd>,
    /// The FUSE connection while it is mounted.
    pub fuse: Option<Arc<OwnedFd>>,
    /// Where users of its disk connect.
    pub listeners: Listeners,
    /// Their connections between two front ends.
    pub handover: Option<Handover>,
    /// Somebody keeps copies in case the keeper is killed.
    pub kept: Option<Kept>,
    /// A front end of an earlier keeper may have read requests from the mount.
    pub was_served: bool,
}

impl Held {
    /// Nobody comes to the volume any more, and who is there is cut off.
    pub(crate) fn close_to_users(&mut self) {
        self.fuse = None;
        self.listeners = Listeners::default();
        self.handover = None;
        self.kept = None;
    }
}
