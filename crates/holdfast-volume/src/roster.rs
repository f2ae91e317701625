//! The names behind the node numbers, kept in the notes beside the log.
//!
//! The kernel knows nodes by number and goes on using the numbers after a front end has died. The
//! roster tells the next front end which names they stand for. It holds nothing durable: a machine
//! that starts anew has a kernel that knows no numbers.
//!
//! Promise: folding the records gives every remembered node its names.
//! Never: is read by anything but a front end that takes over.

use std::collections::HashMap;

use holdfast_log::{CommitLog, NoteError};

use crate::names::Place;
use crate::record::{take, take_u64};
use crate::tree::{Errno, NodeId};

const BIND: u8 = 1;
const UNBIND: u8 = 2;
const DROP: u8 = 3;

/// One step in the life of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The node has this name.
    Bind(NodeId, Place),
    /// The node no longer has this name.
    Unbind(NodeId, Place),
    /// Nobody remembers the node.
    Drop(NodeId),
}

impl Entry {
    /// Its bytes; FORMAT.md tells them.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (op, node, place) = match self {
            Entry::Bind(node, place) => (BIND, node, Some(place)),
            Entry::Unbind(node, place) => (UNBIND, node, Some(place)),
            Entry::Drop(node) => (DROP, node, None),
        };
        let mut bytes = vec![op];
        bytes.extend_from_slice(&node.0.to_le_bytes());
        if let Some(place) = place {
            bytes.extend_from_slice(&place.parent.0.to_le_bytes());
            bytes.extend_from_slice(&place.name);
        }
        bytes
    }

    /// None for bytes that no version of Holdfast writes.
    fn decode(mut bytes: &[u8]) -> Option<Entry> {
        let op = take(&mut bytes, 1)?[0];
        let node = NodeId(take_u64(&mut bytes)?);
        if op == DROP {
            return Some(Entry::Drop(node));
        }
        let parent = NodeId(take_u64(&mut bytes)?);
        let place = Place { parent, name: bytes.into() };
        match op {
            BIND => Some(Entry::Bind(node, place)),
            UNBIND => Some(Entry::Unbind(node, place)),
            _ => None,
        }
    }
}

/// The names of every node that an earlier front end told the kernel of.
pub(crate) type Known = HashMap<NodeId, Vec<Place>>;

/// Writes one entry; makes room from `known`, the state without the entry, when the roster is
/// full. `ENOSPC` if even that does not fit: the roster is too small for the remembered nodes.
pub(crate) fn note(
    log: &dyn CommitLog,
    entry: &Entry,
    known: impl FnOnce() -> Vec<Entry>,
) -> Result<(), Errno> {
    let bytes = entry.encode();
    match log.note(&bytes) {
        Err(NoteError::Full) => rewrite(log, known())?,
        noted => return noted.map_err(errno_of),
    }
    log.note(&bytes).map_err(errno_of)
}

/// Replaces the roster's contents.
pub(crate) fn rewrite(log: &dyn CommitLog, entries: Vec<Entry>) -> Result<(), Errno> {
    log.replace_notes(&mut entries.iter().map(Entry::encode)).map_err(errno_of)
}

fn errno_of(error: NoteError) -> Errno {
    match error {
        NoteError::Full => Errno::NOSPC,
        _ => Errno::IO,
    }
}

/// Folds the roster.
pub(crate) fn known(log: &dyn CommitLog) -> Result<Known, NoteError> {
    let mut known = Known::new();
    for entry in log.notes()?.iter().filter_map(|bytes| Entry::decode(bytes)) {
        fold(&mut known, entry);
    }
    known.retain(|_, places| !places.is_empty());
    Ok(known)
}

/// Takes in one step.
fn fold(known: &mut Known, entry: Entry) {
    match entry {
        Entry::Bind(node, place) => {
            let places = known.entry(node).or_default();
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Entry::Unbind(node, place) => {
            if let Some(places) = known.get_mut(&node) {
                places.retain(|other| *other != place);
            }
        }
        Entry::Drop(node) => {
            known.remove(&node);
        }
    }
}

#[cfg(test)]
mod tests;
