//! Services that stand in the server, used as if they stood here.
//!
//! Promise: [`LogClient`] is a [`CommitLog`](holdfast_log::CommitLog): an append that returned is
//! in the log once, also if the server died, was replaced or was upgraded meanwhile.
//! [`BlocksClient`] is a disk ([`Blocks`](holdfast_io::Blocks)): what returned is done, perhaps
//! twice. [`ResponderClient`] has requests done once. A call across a server's death only takes
//! longer. It fails when the server refuses it.
//! Never: starts a thread, keeps a copy of what it sent, holds state that a crash could lose.
//!
//! Where to look: `protocol` is what passes between the two processes, for both; `call` is one
//! request; `link` is one connection to one server process; `session` outlives links and numbers
//! requests; `answer` judges what comes back. On top are `client`, the log, with `counts`, what it
//! need not send at once, and `wire`, the frames and notes that a buffer brings back;
//! `blocks_client`, the disk; `responder_client`, everything else.

mod answer;
mod blocks_client;
mod call;
mod client;
mod connect;
mod counts;
mod link;
pub mod protocol;
mod responder_client;
mod session;
pub mod wire;

pub use blocks_client::BlocksClient;
pub use client::LogClient;
pub use connect::ConnectError;
pub use responder_client::{RequestError, ResponderClient};
