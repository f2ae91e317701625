//! The server: owns services and the memory they rest in, and serves them to other processes.
//!
//! Promise: what is acknowledged is in a log once, and done by a responder once, whoever dies and
//! however often a request is repeated; a client that breaks the protocol hurts itself alone; a
//! server that ends leaves its regions such that the next one goes on.
//! Never: maps its regions, or anything of one client, into another process; starts a thread that
//! [`Server::serve`] does not join.
//!
//! Where to look: `server` starts and ends, `door` accepts and hears hellos, `admission` answers
//! one, `seat` counts what it costs, `session` serves one client, `request` checks what it asks and
//! hands it to the `handler` of its service. `registry` knows the services, `service` what they all
//! have, with `service_words`, what outlives them. Logs: `log_handler` has the requests, `served`
//! is one log, `window` knows requests again, `waiting` answers later. Disks: `disk_handler`.
//! Anything else: `responder`. `presence` keeps a client of these two to one session. `confine`
//! gives rights up.

mod admission;
mod confine;
mod disk_handler;
mod door;
mod handler;
mod identity;
mod log_handler;
mod presence;
mod registry;
mod request;
mod responder;
mod seat;
mod served;
mod server;
mod service;
mod service_words;
mod session;
mod waiting;
mod window;
pub mod words;

pub use confine::{Confinement, Refused, confine};
pub use handler::Departure;
pub use responder::{RespondError, Responder};
pub use served::{LogSpec, ServeError};
pub use server::{Server, ServerSpec};
pub use service::{ServiceKind, ServiceSpec};
pub use service_words::ServiceWords;
