//! A whole tree is a tree.
//!
//! Promise: every key that could be has one leaf, which is reached from the root through nodes that
//! say so; keys are in order, each page that is reached is told, and none has parts of two values.
//! Others may change the tree meanwhile.
//! Never: repairs; compares a page with its records.

use std::collections::BTreeSet;

use holdfast_pages::{PageNumber, Unfit};

use super::stop::{Stop, TreeError};
use super::{Seek, Seen, Tree};
use crate::node::Node;
use crate::node::large::Stored;
use crate::pool::Below;

/// What a sound tree has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Its pages.
    pub pages: BTreeSet<PageNumber>,
    /// Keys that are not deleted.
    pub keys: u64,
    /// Entries of keys that are.
    pub ghosts: u64,
    /// Pages of large values that were met twice.
    twice: BTreeSet<PageNumber>,
}

impl<B: Below> Tree<'_, B> {
    /// Goes from leaf to leaf, each time from the root, and looks at all there is.
    ///
    /// # Errors
    /// See [`TreeError`]; [`TreeError::Corrupt`] says which page is not what it should be.
    pub(crate) fn check(&self) -> Result<Checked, TreeError<B::Error>> {
        let checked = self.look()?;
        if checked.twice.is_empty() {
            return Ok(checked);
        }
        // One that was freed and given to another value meanwhile is not met twice again.
        let again = self.look()?;
        match again.twice.intersection(&checked.twice).next() {
            Some(page) => {
                let why = Unfit("two values have it");
                Err(TreeError::Corrupt { page: *page, why })
            }
            None => Ok(again),
        }
    }

    fn look(&self) -> Result<Checked, TreeError<B::Error>> {
        let (mut checked, mut from) = (Checked::default(), Some(Vec::new()));
        while let Some(key) = from {
            let mut values = Vec::new();
            from = self.again(|| self.check_path(&key, &mut checked, &mut values))?;
            for (key, value) in values {
                self.check_large(&key, &value, &mut checked)?;
            }
        }
        Ok(checked)
    }

    /// Checks the leaf of a key, and the nodes on the way that were not met before. Returns where
    /// the leaf ends; adds to `values` what it has that is elsewhere.
    fn check_path(
        &self,
        key: &[u8],
        checked: &mut Checked,
        values: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Option<Vec<u8>>, Stop<B::Error>> {
        let mut path = Vec::new();
        let (leaf, _) = self.descend_through(Seek::At(key), 0, false, |page| {
            path.push(page.number());
            let is_new = !checked.pages.contains(&page.number());
            if is_new { Node::of(page)?.check() } else { Ok(()) }
        })?;
        let node = self.node(&leaf)?;
        // What is before the key was met when its leaf was another one.
        let (Ok(first) | Err(first)) = node.find(key);
        let ghosts = node.entries().skip(first).filter(|entry| entry.ghost).count();
        checked.pages.extend(path);
        checked.ghosts += ghosts as u64;
        checked.keys += (node.count() - first - ghosts) as u64;
        for place in first..node.count() {
            let value = node.entry(place).value;
            if Stored::large_of(value).is_some() {
                values.push((node.key(place), value.to_vec()));
            }
        }
        Ok(node.shape().end().map(<[u8]>::to_vec))
    }

    /// Checks the pages of a large value. If they are not what they should be, somebody may have
    /// freed them, but not while the key has that value.
    fn check_large(
        &self,
        key: &[u8],
        value: &[u8],
        checked: &mut Checked,
    ) -> Result<(), TreeError<B::Error>> {
        let large = Stored::large_of(value).expect("only large values are to be checked");
        let mut pages = Vec::new();
        match self.each_part(large, |number, _| pages.push(number)) {
            Ok(()) => {
                let known = pages.iter().filter(|page| checked.pages.contains(page));
                checked.twice.extend(known.copied());
                checked.pages.extend(pages);
            }
            Err(error) if self.has(key, value)? => return Err(error),
            Err(_) => {}
        }
        Ok(())
    }

    /// Whether the entry of a key, ghost or not, has this value.
    fn has(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError<B::Error>> {
        let mut has = false;
        self.leaf(Seek::At(key), |seen| {
            has = matches!(seen, Seen::Key { key: k, value: v, .. } if (k, v) == (key, value));
            false
        })?;
        Ok(has)
    }
}
