//! All trees of a store are trees, and have its pages among them.
//!
//! Promise: each tree that has a name is looked at whole, and each page that was given is a tree's,
//! is free, or is told; none is both.
//! Never: frees a page.

use std::collections::BTreeSet;

use holdfast_pages::{PageKind, PageNumber, Unfit};

use super::{NAMES_ROOT, Trees, root_in};
use crate::node::large::Stored;
use crate::pool::Below;
use crate::tree::{LeafEnd, Seek, Seen, TreeError};

/// What sound trees have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedTrees {
    /// Trees, that of their names included.
    pub trees: u64,
    /// Pages of all of them.
    pub pages: u64,
    /// Keys that are not deleted.
    pub keys: u64,
    /// Entries of keys that are.
    pub ghosts: u64,
    /// Pages that are no tree's and are not free: a crash came before they were, or they are about
    /// to be. They take room, and do no harm; [`crate::Store::reclaim`] frees them.
    pub unreached: Vec<PageNumber>,
}

impl<B: Below> Trees<'_, B> {
    /// Looks at all trees, while they change. A tree whose name is not committed counts, too.
    ///
    /// # Errors
    /// See [`TreeError`]; [`TreeError::Corrupt`] says which page is not what it should be.
    pub(crate) fn check(&self) -> Result<CheckedTrees, TreeError<B::Error>> {
        // First: what is given later is not missed.
        let (next, free) = self.numbers.unused();
        let (mut found, mut reached) = (CheckedTrees::default(), BTreeSet::new());
        for root in self.roots()? {
            let tree = self.tree(root).check()?;
            found.trees += 1;
            found.pages += tree.pages.len() as u64;
            found.keys += tree.keys;
            found.ghosts += tree.ghosts;
            reached.extend(tree.pages);
        }
        self.check_free()?;
        reached.extend(free);
        let given = (1..next.get()).map(PageNumber);
        found.unreached = given.filter(|page| !reached.contains(page)).collect();
        Ok(found)
    }

    /// Whether every page whose number may be given is free, or never began.
    fn check_free(&self) -> Result<(), TreeError<B::Error>> {
        for number in self.numbers.unused().1 {
            let Ok(page) = self.pool.read(number) else { continue };
            let is_used = !matches!(page.kind(), None | Some(PageKind::Free));
            // Whoever takes a number does so before its page begins.
            if is_used && self.numbers.may_give(number) {
                let why = Unfit("it is used, and may be given again");
                return Err(TreeError::Corrupt { page: number, why });
            }
        }
        Ok(())
    }

    /// The root of every tree, that of the names first.
    fn roots(&self) -> Result<Vec<PageNumber>, TreeError<B::Error>> {
        let (names, mut roots, mut from) = (self.tree(NAMES_ROOT), vec![NAMES_ROOT], Vec::new());
        loop {
            let mut damaged = None;
            let end = names.leaf(Seek::At(&from), |seen| {
                if let Seen::Key { value, ghost: false, .. } = seen {
                    match root_told(value) {
                        Ok(root) => roots.push(root),
                        Err(why) => damaged = Some(why),
                    }
                }
                damaged.is_none()
            })?;
            if let Some(why) = damaged {
                return Err(TreeError::Corrupt { page: NAMES_ROOT, why });
            }
            let LeafEnd::Next(next) = end else { return Ok(roots) };
            from = next;
        }
    }
}

/// The root that an entry of the tree of names tells.
fn root_told(stored: &[u8]) -> Result<PageNumber, Unfit> {
    match Stored::of(stored)? {
        Stored::Plain(value) => root_in(value),
        Stored::Large(_) => Err(Unfit("no root is a large value")),
    }
}
