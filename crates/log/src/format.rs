//! The bytes of a log's files: what stands where, and the checks of it.
//!
//! Promise: what is read here was checked, and what is written here can be read.
//! Never: decides when a file is written, or what an open makes of it.

pub(crate) mod buffer;
pub(crate) mod bytes;
pub(crate) mod catalogue;
pub(crate) mod pads;
pub(crate) mod shape;
pub(crate) mod stripe;
pub(crate) mod whose;
