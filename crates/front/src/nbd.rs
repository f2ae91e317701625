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

mod agreed;
mod buffers;
mod connection;
mod exchange;
mod export;
mod gate;
mod listen;
mod looks;
mod negotiate;
pub mod parse;
mod payload;
mod reply;
mod serve;
mod session;
mod shared;
mod step;
mod tls;
mod wire;

pub use buffers::Replies;
pub use exchange::Exchange;
pub use export::{Export, NbdConfig};
pub use listen::{ListenError, Listener, serve};
pub use session::{Session, SessionFault};
pub use step::{Over, Step};
pub use tls::{Tls, TlsFault, tls_connections};
