//! All trees of a store: where they are, and how what was done to them is undone.
//!
//! Byte table: FORMAT.md, "Names of trees".
//!
//! Promise: a tree has one root for ever, which the tree of names tells; a change is undone in the
//! tree that it was made in, and with one record.
//! Never: locks a name, or commits one: that is for a transaction, as with any other key.

pub(crate) mod dropping;
pub(crate) mod loading;
pub(crate) mod named_tree;

use holdfast_pages::{PageNumber, Slot, Stream, Unfit, What, varint};

use crate::node::aside::Aside;
use crate::node::body::Body;
use crate::node::fields::page;
use crate::node::large::Stored;
use crate::pool::allocator::Allocator;
use crate::pool::{Below, Pool};
use crate::restart::rollback::Undoer;
use crate::snapshot::formers::Formers;
use crate::tree::{Tree, TreeError};

mod asides;
mod check;

pub use check::CheckedTrees;

/// The root of the tree of names, which is the first page that a store makes.
pub(crate) const NAMES_ROOT: PageNumber = PageNumber(1);

/// What no name begins with, as names are text: the entries of trees that are to go do.
pub(crate) const DROPPED: u8 = 0xFF;

/// Pages that one step frees, at most.
const FREED_AT_ONCE_PAGES: u64 = 512;

/// The entry of a tree that is to go.
pub(crate) fn dropped_name(root: PageNumber) -> Vec<u8> {
    [&[DROPPED][..], &root.get().to_be_bytes()].concat()
}

/// Where all trees are. Cheap to make, as a [`Tree`] is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trees<'a, B> {
    pub(crate) pool: &'a Pool<B>,
    pub(crate) stream: &'a Stream,
    pub(crate) numbers: &'a Allocator,
    pub(crate) formers: &'a Formers,
}

/// The value of a tree's name: where its root is.
#[must_use]
pub(crate) fn root_value(root: PageNumber) -> Vec<u8> {
    let mut value = Vec::new();
    varint::put(root.get(), &mut value);
    value
}

/// The root that the value of a tree's name tells.
///
/// # Errors
/// It tells none.
pub(crate) fn root_in(mut value: &[u8]) -> Result<PageNumber, Unfit> {
    let root = page(&mut value)?;
    let may_be = value.is_empty() && root != NAMES_ROOT && u32::try_from(root.get()).is_ok();
    if may_be { Ok(root) } else { Err(Unfit("no tree has its root there")) }
}

impl<'a, B: Below> Trees<'a, B> {
    /// The trees on these pages.
    #[must_use]
    pub(crate) fn new(
        pool: &'a Pool<B>,
        stream: &'a Stream,
        numbers: &'a Allocator,
        formers: &'a Formers,
    ) -> Trees<'a, B> {
        Trees { pool, stream, numbers, formers }
    }

    /// The tree with this root.
    #[must_use]
    pub(crate) fn tree(&self, root: PageNumber) -> Tree<'a, B> {
        Tree::new(self.pool, self.stream, self.numbers, self.formers, root)
    }

    /// Makes a tree with nothing in it, and returns its root. The first of a store is the tree of
    /// names. Another is nobody's, and its page lost, until a transaction that gives it a name is
    /// committed.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn create(&self) -> Result<PageNumber, TreeError<B::Error>> {
        Tree::create(self.pool, self.stream, self.numbers, self.formers)
    }
}

impl<B: Below> Trees<'_, B> {
    /// Frees what lies elsewhere of the value that a change took away, once the transaction that
    /// made it is committed, and the key is still locked.
    ///
    /// # Errors
    /// See [`TreeError`]; the pages are nobody's then, and the commit stands.
    pub(crate) fn let_go(&self, body: &[u8]) -> Result<(), TreeError<B::Error>> {
        let Ok(done) = Body::parse(body) else { return Ok(()) };
        match (done.spot(), done.goes().and_then(Stored::large_of)) {
            (Some(spot), Some(large)) => self.tree(spot.tree).free(large),
            _ => Ok(()),
        }
    }

    /// Frees some pages whose freeing was put off. True if there were some.
    ///
    /// # Errors
    /// See [`TreeError`]. For want of room it is put off again.
    pub(crate) fn free_put_off(&self) -> Result<bool, TreeError<B::Error>> {
        Ok(self.tree(NAMES_ROOT).free_waiting(FREED_AT_ONCE_PAGES)? > 0)
    }
}

impl<B: Below> Undoer for Trees<'_, B> {
    type Error = TreeError<B::Error>;

    fn undo(&self, slot: Slot, body: &[u8]) -> Result<(), TreeError<B::Error>> {
        let spot = Body::parse(body)?.spot();
        let tree = spot.ok_or(Unfit("nobody undoes that"))?.tree;
        self.tree(tree).undo(body, slot)
    }

    fn put_aside(&self, slot: Slot, count: u64, told: &[u8]) -> Result<Aside, TreeError<B::Error>> {
        self.lay_aside(slot, count, told)
    }

    fn bring_back(&self, slot: Slot, aside: Aside) -> Result<Vec<u8>, TreeError<B::Error>> {
        self.fetch_aside(slot, aside)
    }

    fn unfit(why: Unfit) -> TreeError<B::Error> {
        why.into()
    }

    fn aborted(&self, slot: Slot) -> Result<(), TreeError<B::Error>> {
        let put = self.stream.append(&mut |group| {
            group.put(&What::Aborted(slot));
        });
        put.map(drop).map_err(TreeError::Stage)
    }
}

#[cfg(test)]
mod tests;
