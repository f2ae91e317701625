//! Files of the home that stay open from one read to the next.
//!
//! Promise: at most [`FILES_MAX`] at a time, whatever is read; the longest kept goes first.
//! Never: opens a file, or closes one that somebody is reading.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::node::Node;

/// Far below what a process may have open, and enough for a database's tables.
const FILES_MAX: usize = 256;

/// The nodes whose files are kept open, the longest first.
#[derive(Default)]
pub(crate) struct KeptFiles {
    nodes: Mutex<VecDeque<Weak<Node>>>,
}

impl KeptFiles {
    /// The node's file was not kept before, and is now.
    pub(crate) fn keep(&self, node: &Arc<Node>) {
        let longest = {
            let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
            nodes.push_back(Arc::downgrade(node));
            if nodes.len() > FILES_MAX { nodes.pop_front() } else { None }
        };
        if let Some(node) = longest.and_then(|node| node.upgrade()) {
            *node.file() = None;
        }
    }
}
