//! The names behind the node numbers, kept in the notes beside the log.
//!
//! The kernel knows nodes by number and goes on using the numbers after a front end has died. The
//! roster tells the next front end which names they stand for. It holds nothing durable: a machine
//! that starts anew has a kernel that knows no numbers.
//!
//! The kernel forgets a node by saying how often it was told of it, so the roster counts that too,
//! across all front ends. A count may be too high where a front end died between the note and the
//! answer, or between a FORGET and its note: then a node is kept that nobody needs. It is never too
//! low: a node that the kernel may still ask for is never let go.
//!
//! Promise: folding the records gives every remembered node its names, and how often it was told.
//! Never: is read by anything but a front end that takes over.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_log::{CommitLog, NoteError};

use crate::names::Place;
use crate::record::{take, take_u64};
use crate::tree::{Errno, NodeId};

const BIND: u8 = 1;
const UNBIND: u8 = 2;
const DROP: u8 = 3;
const TOLD: u8 = 4;
const COUNT: u8 = 5;

/// One step in the life of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The node has this name.
    Bind(NodeId, Place),
    /// The node no longer has this name.
    Unbind(NodeId, Place),
    /// Nobody remembers the node.
    Drop(NodeId),
    /// The node has this name, by which a front end is about to be told of it once more.
    Told(NodeId, Place),
    /// Front ends have been told of the node this often more than they have forgotten it.
    Count(NodeId, u64),
}

impl Entry {
    /// Its bytes; FORMAT.md tells them.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (op, node) = match self {
            Entry::Bind(node, _) => (BIND, node),
            Entry::Unbind(node, _) => (UNBIND, node),
            Entry::Drop(node) => (DROP, node),
            Entry::Told(node, _) => (TOLD, node),
            Entry::Count(node, _) => (COUNT, node),
        };
        let mut bytes = vec![op];
        bytes.extend_from_slice(&node.0.to_le_bytes());
        match self {
            Entry::Bind(_, place) | Entry::Unbind(_, place) | Entry::Told(_, place) => {
                bytes.extend_from_slice(&place.parent.0.to_le_bytes());
                bytes.extend_from_slice(&place.name);
            }
            Entry::Count(_, count) => bytes.extend_from_slice(&count.to_le_bytes()),
            Entry::Drop(_) => {}
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
        let second = take_u64(&mut bytes)?;
        let place = Place { parent: NodeId(second), name: bytes.into() };
        match op {
            BIND => Some(Entry::Bind(node, place)),
            UNBIND => Some(Entry::Unbind(node, place)),
            TOLD => Some(Entry::Told(node, place)),
            COUNT => Some(Entry::Count(node, second)),
            _ => None,
        }
    }
}

/// What the roster knows of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    /// Its names.
    pub(crate) places: Vec<Place>,
    /// How often, at the most, the kernel was told of it and has not forgotten it.
    pub(crate) count: u64,
}

impl Remembered {
    /// The shortest entries that say this of the node.
    pub(crate) fn entries(&self, node: NodeId) -> Vec<Entry> {
        let place = |place: &Place| match self.count {
            1 if *place == self.places[0] => Entry::Told(node, place.clone()),
            _ => Entry::Bind(node, place.clone()),
        };
        let count = (self.count != 1 && !self.places.is_empty()).then_some(self.count);
        let count = count.map(|count| Entry::Count(node, count));
        self.places.iter().map(place).chain(count).collect()
    }
}

/// What is known of every node that an earlier front end told the kernel of.
pub(crate) type Known = HashMap<NodeId, Remembered>;

/// A full roster is written anew once the entries since the last time amount to one in so many
/// bytes of what it held then: so much may be gained, and so much at least each entry pays for.
const WORTH_REWRITING: u64 = 16;

/// The roster as this process writes it.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    counts: Mutex<Counts>,
}

/// Bytes of entries, as encoded.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Held when it was last written anew.
    kept: u64,
    /// Asked for since, refused ones included: a refused removal frees as much as a noted one.
    asked: u64,
    /// Noted since.
    noted: u64,
}

impl Roster {
    /// Writes one entry; makes room from `known`, the state without the entry, when the roster is
    /// full. `ENOSPC`, at once, if that would hardly give room: the roster is too small for the
    /// remembered nodes.
    pub(crate) fn note(
        &self,
        log: &dyn CommitLog,
        entry: &Entry,
        known: impl FnOnce() -> Vec<Entry>,
    ) -> Result<(), Errno> {
        let bytes = entry.encode();
        self.counts().asked += bytes.len() as u64;
        match log.note(&bytes) {
            Err(NoteError::Full) if !self.is_worth_rewriting(entry) => return Err(Errno::NOSPC),
            Err(NoteError::Full) => self.rewrite(log, known())?,
            noted => return self.noted(&bytes, noted),
        }
        self.noted(&bytes, log.note(&bytes))
    }

    /// Replaces the roster's contents.
    pub(crate) fn rewrite(&self, log: &dyn CommitLog, entries: Vec<Entry>) -> Result<(), Errno> {
        let mut kept = 0;
        let encoded = entries.iter().map(Entry::encode);
        let replaced = log.replace_notes(&mut encoded.inspect(|bytes| kept += bytes.len() as u64));
        // One that failed has cost as much, and is not tried again any sooner.
        *self.counts() = Counts { kept, asked: 0, noted: 0 };
        replaced.map_err(errno_of)
    }

    /// Whether the entries since the last time can have made enough of the roster needless. Which
    /// name a known node has must not be missed for the want of any room that there is.
    fn is_worth_rewriting(&self, entry: &Entry) -> bool {
        let Counts { kept, asked, noted } = *self.counts();
        let renames = matches!(entry, Entry::Bind(..) | Entry::Unbind(..));
        asked >= kept / WORTH_REWRITING || renames && noted > 0
    }

    fn noted(&self, bytes: &[u8], noted: Result<(), NoteError>) -> Result<(), Errno> {
        noted.map_err(errno_of)?;
        self.counts().noted += bytes.len() as u64;
        Ok(())
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    known.retain(|_, node| !node.places.is_empty() && node.count > 0);
    Ok(known)
}

/// Takes in one step.
fn fold(known: &mut Known, entry: Entry) {
    match entry {
        Entry::Bind(node, place) => bind(known.entry(node).or_default(), place),
        Entry::Told(node, place) => {
            let node = known.entry(node).or_default();
            node.count = node.count.saturating_add(1);
            bind(node, place);
        }
        Entry::Count(node, count) => known.entry(node).or_default().count = count,
        Entry::Unbind(node, place) => {
            if let Some(node) = known.get_mut(&node) {
                node.places.retain(|other| *other != place);
            }
        }
        Entry::Drop(node) => {
            known.remove(&node);
        }
    }
}

fn bind(node: &mut Remembered, place: Place) {
    if !node.places.contains(&place) {
        node.places.push(place);
    }
}

#[cfg(test)]
mod tests;
