//! The kinds of things that are configured, each with its section.
//!
//! Promise: a new kind is one file here and one line in the file of the configuration.
//! Never: knows what another kind is made of, but for what it has of it.

pub(crate) mod disk;
pub(crate) mod log;
pub(crate) mod snapshot;
pub(crate) mod table;
pub(crate) mod volume;
