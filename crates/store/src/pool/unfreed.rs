//! Pages of large values that nobody reaches, and that are still to be freed.
//!
//! Promise: how many pages wait is told, and each is handed to one who frees it.
//! Never: frees a page, or knows why it was not freed at once.

use holdfast_pages::PageNumber;

/// So many pages may wait to be freed without any transaction that replaces or deletes large values
/// taking part in it; beyond that each frees twice as many as it leaves behind.
pub const UNFREED_PAGES_MAX: u64 = 1024;

/// Pages of a large value that nobody reaches, and that are to be freed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PutOff {
    /// The root of the tree whose value it was.
    pub(crate) tree: PageNumber,
    /// The first page that is left.
    pub(crate) first: PageNumber,
    /// How many are left.
    pub(crate) pages: u64,
}

/// What waits.
#[derive(Debug, Default)]
pub(crate) struct Unfreed {
    all: Vec<PutOff>,
    pages: u64,
}

impl Unfreed {
    pub(crate) fn push(&mut self, put_off: PutOff) {
        self.pages += put_off.pages;
        self.all.push(put_off);
    }

    /// The newest, which may still be in memory.
    pub(crate) fn pop(&mut self) -> Option<PutOff> {
        let put_off = self.all.pop()?;
        self.pages -= put_off.pages;
        Some(put_off)
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }
}
