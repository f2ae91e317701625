//! A tree of a store, as its users name it.
//!
//! Promise: the same whenever the store is opened again.
//! Never: knows a page.

use holdfast_pages::PageNumber;

use crate::face::header::Header;

/// A tree of a store, by its name: see [`crate::Store::tree`]. It is the same whenever that store
/// is opened again, and no other store takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    pub(crate) root: PageNumber,
    pub(crate) store: Header,
}
