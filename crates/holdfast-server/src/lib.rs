//! The server: owns logs and the memory they rest in, and serves them to other processes.
//!
//! Promise: what is acknowledged is in the log once, whoever dies and however often a request is
//! repeated; a client that breaks the protocol hurts itself alone; a server that ends leaves its
//! regions such that the next one goes on.
//! Never: maps its regions, or anything of one client, into another process; starts a thread that
//! [`Server::serve`] does not join.
//!
//! Where to look: `server` accepts and ends, `admission` answers a hello, `session` serves one
//! client, `request` looks at what it asks, `registry` knows the services, `served` is one log,
//! `window` knows requests again, `waiting` answers later, `confine` gives rights up.

mod admission;
mod confine;
mod registry;
mod request;
mod served;
mod server;
mod session;
mod waiting;
mod window;
pub mod words;

pub use confine::{Confinement, Refused, confine};
pub use served::{LogSpec, ServeError};
pub use server::{Server, ServerSpec};
