//! A disk as a network block device: unix and TCP sockets, for hypervisors, for `nbd-client`, and
//! for whatever speaks NBD.
//!
//! Promise: a client that breaks the protocol, stops reading or dies hurts itself alone; a request
//! is answered only after the disk has said what the answer says; connections move to another
//! process without losing a byte ([`Session`]).
//! Never: keeps data between two requests, or reads or writes outside the range that was checked.
//!
//! Spoken: fixed newstyle with INFO and GO, simple and structured replies, FUA, FLUSH, TRIM,
//! WRITE_ZEROES, CACHE, BLOCK_STATUS (`base:allocation`), several connections to one export. What
//! was acknowledged on one connection is covered by a flush on any other, because all of them
//! are served from one disk that holds back nothing of its own.
//!
//! A process that is killed takes its connections with it: clients connect again and repeat what
//! was not answered. A process that ends in good order hands them on, but for those that speak TLS:
//! their secrets are this process's, so they end behind a reply, and clients connect again.

mod buffers;
mod connection;
mod exchange;
mod gate;
mod listen;
mod looks;
mod negotiate;
pub mod parse;
mod reply;
mod serve;
mod session;
mod tls;
mod wire;

use std::time::Duration;

use holdfast_io::Blocks;

pub use buffers::Replies;
pub use exchange::{Exchange, Over, Step};
pub use listen::{ListenError, Listener, serve};
pub use session::{Session, SessionFault};
pub use tls::{Tls, TlsFault, tls_connections};

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
