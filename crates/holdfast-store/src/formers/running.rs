//! What transactions had changed that ran where a snapshot stands.
//!
//! Promise: of each key the bodies of the changes that were neither committed nor undone there, the
//! newest first.
//! Never: undoes anything.

use std::collections::HashMap;

use holdfast_pages::{PageNumber, Slot, Unfit};

use crate::body::Body;

/// What a change takes besides its key and its body, about.
const CHANGE_BYTES: usize = 112;

/// What transactions had changed, by tree and key.
#[derive(Debug, Default)]
pub(crate) struct Running {
    changes: HashMap<PageNumber, HashMap<Vec<u8>, Vec<Vec<u8>>>>,
    bytes: u64,
}

impl Running {
    /// What these transactions had changed, each with its bodies, oldest first.
    ///
    /// # Errors
    /// A body is none of a change that a transaction makes.
    pub(crate) fn of(transactions: Vec<(Slot, Vec<Vec<u8>>)>) -> Result<Running, Unfit> {
        let mut running = Running::default();
        for body in transactions.into_iter().flat_map(|(_, bodies)| bodies.into_iter().rev()) {
            let spot = Body::parse(&body)?.spot();
            let spot = spot.ok_or(Unfit("no transaction changes a page so"))?;
            let (tree, key) = (spot.tree, spot.key.to_vec());
            running.bytes += (CHANGE_BYTES + key.len() + body.len()) as u64;
            running.changes.entry(tree).or_default().entry(key).or_default().push(body);
        }
        Ok(running)
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
