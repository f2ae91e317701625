//! A whole tree is a tree.
//!
//! Promise: every key that could be has one leaf, which is reached from the root through nodes that
//! say so; keys are in order, and each page that is reached is told. Others may change the tree
//! meanwhile.
//! Never: repairs; compares a page with its records.

use std::collections::BTreeSet;

use holdfast_pages::{PageNumber, Unfit};

use super::{Seek, Stop, Tree, TreeError, corrupt};
use crate::node::Node;
use crate::pool::Below;

/// What a sound tree has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Its pages.
    pub pages: BTreeSet<PageNumber>,
    /// Keys that are not deleted.
    pub keys: u64,
    /// Entries of keys that are.
    pub ghosts: u64,
}

impl<B: Below> Tree<'_, B> {
    /// Goes from leaf to leaf, each time from the root, and looks at all there is.
    ///
    /// # Errors
    /// See [`TreeError`]; [`TreeError::Corrupt`] says which page is not what it should be.
    pub fn check(&self) -> Result<Checked, TreeError<B::Error>> {
        let (mut checked, mut from) = (Checked::default(), Some(Vec::new()));
        while let Some(key) = from {
            from = self.again(|| self.check_path(&key, &mut checked))?;
        }
        Ok(checked)
    }

    /// Checks the leaf of a key, and the nodes on the way that were not met before. Returns where
    /// the leaf ends.
    fn check_path(
        &self,
        key: &[u8],
        checked: &mut Checked,
    ) -> Result<Option<Vec<u8>>, Stop<B::Error>> {
        let mut path = Vec::new();
        let (leaf, _) = self.descend_through(Seek::At(key), 0, false, |page| {
            path.push(page.number());
            let is_new = !checked.pages.contains(&page.number());
            if is_new { Node::of(page)?.check() } else { Ok(()) }
        })?;
        let node = self.node(&leaf)?;
        if node.shape().low != key {
            return Err(corrupt(&leaf, Unfit("the leaf before ends elsewhere")));
        }
        let ghosts = node.entries().filter(|entry| entry.ghost).count();
        checked.pages.extend(path);
        checked.ghosts += ghosts as u64;
        checked.keys += (node.count() - ghosts) as u64;
        Ok(node.shape().end().map(<[u8]>::to_vec))
    }
}
