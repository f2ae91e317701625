//! What a step of a conversation comes to.
//!
//! Promise: the same for both parts of a conversation.
//! Never: knows which part it was.

use super::parse::Fault;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// So many bytes of the input are done with.
    Used(usize),
    /// Nothing was done; so many bytes of input are needed, counted from its start.
    Needs(usize),
    /// A reply has to wait until the disk is flushed: see [`super::Exchange::flushed`].
    Flush {
        /// Bytes of the input that are done with.
        used: usize,
        /// The request.
        cookie: u64,
    },
    /// From here on both sides speak TLS; what was put is still to be sent as it is.
    Secure {
        /// Bytes of the input that are done with.
        used: usize,
    },
    /// The last message was heard.
    Over(Over),
}

/// How a conversation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The client said so. What it asked for before is still answered.
    Parted,
    /// What it sent is not the protocol.
    Fault(Fault),
}
