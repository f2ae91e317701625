//! Where the pages of a store lie.
//!
//! Promise: whoever makes, keeps, copies or restores pages means the same places.
//! Never: opens anything.

use std::sync::Arc;

use holdfast_io::Files;

/// The page file.
pub(crate) const PAGES: &str = "pages";

/// Where the pages of a store lie.
#[derive(Clone)]
pub struct Directories {
    /// The page file, what says how far its pages are, and the bases.
    pub store: Arc<dyn Files>,
    /// The archive, and nothing else.
    pub archive: Arc<dyn Files>,
}
