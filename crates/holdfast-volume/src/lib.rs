//! A directory kept by a log.
//!
//! Promise: what is acknowledged is stable; what is in the home is durable in the log first; after
//! any failure home plus log is a prefix of the acknowledged order.
//! Never: speaks a protocol, or starts a thread.

mod tree;

pub use tree::*;
