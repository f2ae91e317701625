//! The control socket: how commands reach the running keeper.
//!
//! Promise: one request a connection; while it is worked on, progress lines; then one answer. Only
//! the socket's owner can connect (mode 0600).
//! Never: decides; [`crate::keeper::Keeper`] does.

mod client;
pub(crate) mod connect;
pub(crate) mod protocol;
mod server;

pub use client::{Asking, KeeperProcess, ask, is_there};
pub use protocol::{Answer, Command};
pub use server::Server;
