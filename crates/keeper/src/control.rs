//! The control socket: how commands reach the running keeper.
//!
//! Promise: one request a connection; while it is worked on, progress lines; then one answer. Only
//! the socket's owner can connect (mode 0600).
//! Never: decides; [`crate::keeper::Keeper`] does.

mod client;
pub(crate) mod connect;
pub(crate) mod protocol;
mod server;
mod whose_file;

pub use client::{Asking, KeeperProcess, ask, is_starting, is_there};
pub use protocol::{Answer, Command};
pub use server::Server;
pub use whose_file::refuse_other_file;
pub(crate) use whose_file::told;
