//! From a record to the disk: appended to the ring, drained to a segment, its waiters told.
//!
//! Promise: nobody is told that something is durable before the device has said so.
//! Never: reads a segment.

pub(crate) mod drain;
pub(crate) mod needs;
pub(crate) mod progress;
pub(crate) mod rate;
pub(crate) mod waiters;
pub(crate) mod writer;
