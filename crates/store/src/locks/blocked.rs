//! Where a transaction could not have a lock, and because of whom.
//!
//! Promise: what is printed has no byte that is not a letter of ASCII, and an end.
//! Never: asks anybody anything: it is what was known when the lock was refused.

use std::fmt::{Display, Formatter, Result};
use std::sync::Arc;

use holdfast_pages::{PageNumber, Slot};

/// Bytes of a key that are printed.
const SHOWN_BYTES_MAX: usize = 48;
/// Transactions that are printed.
const SHOWN_MAX: usize = 8;

/// Where a transaction could not have a lock, and because of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub(crate) tree: Option<Arc<str>>,
    pub(crate) root: PageNumber,
    pub(crate) key: Vec<u8>,
    pub(crate) by: Vec<Slot>,
}

impl Blocked {
    /// The name of the tree, if it was asked for by it since the store was opened.
    #[must_use]
    pub fn tree(&self) -> Option<&str> {
        self.tree.as_deref()
    }

    /// The key that the lock is on, or behind which the gap is; empty if that is before all keys.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The numbers of the transactions that have it, or asked for it before; see
    /// [`crate::Transaction::number`]. They may have ended since.
    pub fn by(&self) -> impl Iterator<Item = u16> {
        self.by.iter().map(|slot| slot.0)
    }
}

impl Display for Blocked {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let shown = &self.key[..self.key.len().min(SHOWN_BYTES_MAX)];
        write!(out, "key \"{}\"", shown.escape_ascii())?;
        if shown.len() < self.key.len() {
            write!(out, "... of {} bytes", self.key.len())?;
        }
        match &self.tree {
            Some(name) => write!(out, " in tree {}", name.escape_debug())?,
            None => write!(out, " in the tree with root {}", self.root)?,
        }
        let mut between = ", which is locked by transaction ";
        for number in self.by().take(SHOWN_MAX) {
            write!(out, "{between}{number}")?;
            between = ", ";
        }
        if self.by.len() > SHOWN_MAX { write!(out, " and others") } else { Ok(()) }
    }
}
