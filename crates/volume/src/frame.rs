//! The records of one change, as the frame that they are logged in.
//!
//! Promise: each record says where its node stands at this moment of the log.
//! Never: logs.

use crate::record::{AtHome, Op, Record};
use holdfast_io::tree::NodeId;

/// Where a node stands at one moment of the log, as its records say it.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    pub(crate) node: NodeId,
    pub(crate) parent: NodeId,
    pub(crate) path: &'a [u8],
    /// Which inode of the home it is.
    pub(crate) at_home: AtHome,
}

/// The records of one frame, being put together.
pub(crate) struct Frame<'a> {
    pub(crate) spot: Spot<'a>,
    at_ns: i64,
    pub(crate) records: u16,
    pub(crate) payload: Vec<u8>,
    /// Work for the home that is no bytes of the frame.
    pub(crate) unlogged_bytes: u64,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(spot: Spot<'a>, at_ns: i64) -> Frame<'a> {
        Frame { spot, at_ns, records: 0, payload: Vec::new(), unlogged_bytes: 0 }
    }

    /// Appends a record about the frame's node.
    pub(crate) fn add(&mut self, op: Op<'_>) {
        let Frame { spot: Spot { node, parent, path, at_home }, at_ns, .. } = *self;
        Record { node, parent, path, at_home, at_ns, op }.encode(&mut self.payload);
        self.unlogged_bytes += op.unlogged_bytes();
        self.records += 1;
    }
}
