//! How far a negotiation has come, and what it came to.
//!
//! Promise: values that another process can go on from.
//! Never: hears or says anything.

/// How far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The server speaks first.
    #[default]
    Greeting,
    /// The client's flags are awaited.
    Flags,
    /// Options are awaited.
    Options,
}

/// Whether others can listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// They can, and nobody minds.
    Plain,
    /// They can, so nothing is told before TLS is spoken.
    Wanted,
    /// TLS is spoken.
    Spoken,
}

/// What a client may count on, and is held to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Replies with data come in chunks.
    pub(crate) structured: bool,
    /// The client may ask for `base:allocation`.
    pub(crate) allocation: bool,
}
