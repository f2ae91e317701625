//! What a page has, or had, of a key.
//!
//! Promise: what it was before a change, and before the transaction that made it, follows from that
//! and the body of the change alone.
//! Never: looks for the page, or for the change.

use holdfast_pages::{Page, Unfit};

use crate::node::Node;
use crate::node::body::Body;

/// What a page has of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Former {
    /// No entry.
    Absent,
    /// One that is deleted, with the value that it had.
    Ghost(Vec<u8>),
    /// What the leaf says of its value.
    Value(Vec<u8>),
}

impl Former {
    /// What the page has now.
    ///
    /// # Errors
    /// It is no node.
    pub(crate) fn in_page(page: &Page, key: &[u8]) -> Result<Former, Unfit> {
        Ok(Former::in_node(Node::of(page)?, key))
    }

    /// The same of a node.
    pub(crate) fn in_node(node: Node<'_>, key: &[u8]) -> Former {
        let Ok(place) = node.find(key) else { return Former::Absent };
        let entry = node.entry(place);
        Former::of_entry(entry.value, entry.ghost)
    }

    /// An entry with this value.
    pub(crate) fn of_entry(value: &[u8], ghost: bool) -> Former {
        if ghost { Former::Ghost(value.to_vec()) } else { Former::Value(value.to_vec()) }
    }

    /// Bytes of the value.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Former::Absent => 0,
            Former::Ghost(value) | Former::Value(value) => value.len(),
        }
    }

    /// What the leaf said of the value of the key, unless that was deleted or absent, before the
    /// changes with these bodies, the newest first.
    ///
    /// # Errors
    /// Those changes were not made to this.
    pub(crate) fn before(self, bodies: &[Vec<u8>]) -> Result<Option<Vec<u8>>, Unfit> {
        let undone = bodies.iter().try_fold(self, |former, body| former.before_one(body))?;
        Ok(match undone {
            Former::Value(value) => Some(value),
            Former::Absent | Former::Ghost(_) => None,
        })
    }

    fn before_one(self, body: &[u8]) -> Result<Former, Unfit> {
        Ok(match (Body::parse(body)?, self) {
            (Body::Insert { .. }, Former::Value(_)) => Former::Absent,
            (Body::Revive { old, .. }, Former::Value(_)) => Former::Ghost(old.to_vec()),
            (Body::Ghost(_), Former::Ghost(value)) => Former::Value(value),
            (Body::Replace { at, old, new, .. }, Former::Value(mut value)) => {
                let end = at.checked_add(new.len()).filter(|end| *end <= value.len());
                let end = end.ok_or(Unfit("the value that is to be undone is another"))?;
                value.splice(at..end, old.iter().copied());
                Former::Value(value)
            }
            _ => return Err(Unfit("what is to be undone is not there")),
        })
    }
}

#[cfg(test)]
mod tests;
