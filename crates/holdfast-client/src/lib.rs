//! A log that stands in the server, used as if it stood here.
//!
//! Promise: [`LogClient`] is a [`CommitLog`](holdfast_log::CommitLog): an append that returned is
//! in the log once, also if the server died, was replaced or was upgraded meanwhile. A call then
//! only takes longer. It fails when the server refuses it.
//! Never: starts a thread, keeps a copy of what it appended, holds state that a crash could lose.
//!
//! Where to look: `protocol` is what passes between the two processes, for both; `link` is one
//! connection to one server process; `session` outlives links and numbers requests; `client` is
//! the log on top, `counts` what it need not send at once; `wire` the frames and notes that a
//! buffer brings back.

mod client;
mod connect;
mod counts;
mod link;
pub mod protocol;
mod session;
pub mod wire;

pub use client::LogClient;
pub use connect::ConnectError;
