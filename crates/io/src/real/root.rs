//! The directory that all paths begin at.
//!
//! Promise: what is asked of it once is known from then on.
//! Never: follows a path.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use super::stat::describe_open;
use crate::{InodeNumbers, Opener};

/// What is noted of a root: its permission bits while its directory has others, and how far its
/// log has come home.
pub trait RootNotes: std::fmt::Debug + Send + Sync {
    /// Those that users see; `None` if the directory has its own.
    fn shown(&self) -> Option<u32>;
    /// Keeps other bits for users. They are durable once the directory is synced.
    fn keep(&self, mode: u32) -> io::Result<()>;
    /// Everything of its log up to there is below it. That is durable once the directory is synced.
    fn came_home(&self, log_position: u64) -> io::Result<()>;
}

/// The directory that all paths begin at.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) fd: OwnedFd,
    /// Who changes what lies below it.
    pub(super) opener: Opener,
    /// Its device, once somebody has asked.
    pub(super) device: OnceLock<u64>,
    /// Whether it is encrypted.
    pub(super) encrypted: OnceLock<bool>,
    /// And what numbers are good for there.
    pub(super) numbers: OnceLock<InodeNumbers>,
    /// And what room is given in there.
    pub(super) room_unit_bytes: OnceLock<u64>,
    /// What is noted of it, if anything is.
    pub(super) notes: Option<Arc<dyn RootNotes>>,
}

impl Root {
    pub(super) fn is_encrypted(&self) -> io::Result<bool> {
        match self.encrypted.get() {
            Some(encrypted) => Ok(*encrypted),
            None => {
                let encrypted = describe_open(&self.fd)?.encrypted;
                Ok(*self.encrypted.get_or_init(|| encrypted))
            }
        }
    }

    pub(super) fn device(&self) -> io::Result<u64> {
        match self.device.get() {
            Some(device) => Ok(*device),
            None => {
                let device = describe_open(&self.fd)?.device;
                Ok(*self.device.get_or_init(|| device))
            }
        }
    }
}
