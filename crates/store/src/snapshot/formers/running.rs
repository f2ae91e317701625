//! What transactions had changed that ran where a snapshot stands.
//!
//! Promise: of each key the bodies of the changes that were neither committed nor undone there, the
//! newest first.
//! Never: undoes anything.

use std::collections::HashMap;

use holdfast_pages::{PageNumber, Unfit};

use crate::node::body::Body;

/// What a change takes besides its key and its body, about.
const CHANGE_BYTES: usize = 112;

/// What transactions had changed, by tree and key.
#[derive(Debug, Default)]
pub(crate) struct Running {
    changes: HashMap<PageNumber, HashMap<Vec<u8>, Vec<Vec<u8>>>>,
    bytes: u64,
}

impl Running {
    /// Takes one more change; the newest of a transaction come first.
    ///
    /// # Errors
    /// The body is none of a change that a transaction makes.
    pub(crate) fn add(&mut self, body: &[u8]) -> Result<(), Unfit> {
        let spot = Body::parse(body)?.spot();
        let spot = spot.ok_or(Unfit("no transaction changes a page so"))?;
        let (tree, key) = (spot.tree, spot.key.to_vec());
        self.bytes += (CHANGE_BYTES + key.len() + body.len()) as u64;
        self.changes.entry(tree).or_default().entry(key).or_default().push(body.to_vec());
        Ok(())
    }

    /// What they had changed of a key.
    pub(crate) fn of_key(&self, tree: PageNumber, key: &[u8]) -> &[Vec<u8>] {
        self.changes.get(&tree).and_then(|keys| keys.get(key)).map_or(&[], Vec::as_slice)
    }

    /// Bytes that it has in memory, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
