//! Disks as NBD serves them, and how.
//!
//! Promise: all that a front end is told before it starts.
//! Never: changes while it serves.

use std::time::Duration;

use holdfast_io::Blocks;

use super::tls::Tls;

/// A disk under the name by which clients ask for it.
#[derive(Clone, Copy)]
pub struct Export<'a> {
    /// At most 4096 bytes. A client that names none gets the only export, if there is only one.
    pub name: &'a str,
    /// What keeps the bytes. Its size does not change while it is served.
    pub blocks: &'a dyn Blocks,
    /// Changes are refused.
    pub read_only: bool,
}

/// How to serve disks.
#[derive(Clone, Debug)]
pub struct NbdConfig {
    /// Clients of one listener at a time, of which one user or address never has more than half.
    /// Each has a thread (two while it waits for slow flushes) and buffers of up to 1.6 MiB, more
    /// while a single request is longer. Besides, 32 connections of a listener may be about to
    /// choose an export, 16 of one user or address; one more ends the oldest of these.
    pub connections_max: usize,
    /// How long a client may take to choose an export.
    pub negotiation_patience: Duration,
    /// Clients have to speak TLS, and are served nothing before they do.
    pub tls: Option<Tls>,
}
