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
//! The region has room for so many; when it is full, what it has moves into a file at home
//! ([`spill`]), and the region goes on with where that ends.
//!
//! Promise: folding the records gives every remembered node its names, and how often it was told.
//! Never: is read by anything but a front end that takes over.

mod spill;

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_io::Files;
use holdfast_log::{CommitLog, NoteError};

use crate::error::VolumeError;
use crate::home::space::OwnRoom;
use crate::names::requests::{EARLIER, Noted, Requests};
use crate::names::roster::spill::Spill;
use crate::names::{Place, Places};
use crate::record::{AtHome, take, take_u16, take_u64};
use holdfast_io::tree::{Errno, NodeId};

const BIND: u8 = 1;
const UNBIND: u8 = 2;
const DROP: u8 = 3;
const TOLD: u8 = 4;
const COUNT: u8 = 5;
const EXCHANGE: u8 = 6;
const SPILLED: u8 = 7;
const HOME: u8 = 8;
const ATTRIBUTE: u8 = 9;

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
    /// What is about to be done for a request, and the lane of the thread that was asked.
    Asked(u16, Noted),
    /// Front ends have been told of the node this often more than they have forgotten it.
    Count(NodeId, u64),
    /// The node is the inode of this number on the home.
    Home(NodeId, AtHome),
    /// What came before is in the file of this number, so many bytes of it.
    Spilled { number: u64, bytes: u64 },
}

impl Entry {
    /// Its bytes; FORMAT.md tells them.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (op, first) = match self {
            Entry::Bind(node, _) => (BIND, node.0),
            Entry::Unbind(node, _) => (UNBIND, node.0),
            Entry::Drop(node) => (DROP, node.0),
            Entry::Told(node, _) => (TOLD, node.0),
            Entry::Count(node, _) => (COUNT, node.0),
            Entry::Asked(_, Noted::Exchange { one, .. }) => (EXCHANGE, one.0),
            Entry::Asked(_, Noted::Attribute { node, .. }) => (ATTRIBUTE, node.0),
            Entry::Home(node, _) => (HOME, node.0),
            Entry::Spilled { number, .. } => (SPILLED, *number),
        };
        let mut bytes = vec![op];
        bytes.extend_from_slice(&first.to_le_bytes());
        match self {
            Entry::Bind(_, place) | Entry::Unbind(_, place) | Entry::Told(_, place) => {
                bytes.extend_from_slice(&place.parent.0.to_le_bytes());
                bytes.extend_from_slice(&place.name);
            }
            Entry::Count(_, second) | Entry::Spilled { bytes: second, .. } => {
                bytes.extend_from_slice(&second.to_le_bytes());
            }
            Entry::Home(_, at_home) => bytes.extend_from_slice(&at_home.encode()),
            Entry::Asked(lane, noted) => {
                if let Noted::Exchange { other, .. } = noted {
                    bytes.extend_from_slice(&other.0.to_le_bytes());
                }
                let (Noted::Exchange { request, .. } | Noted::Attribute { request, .. }) = noted;
                bytes.extend_from_slice(&request.to_le_bytes());
                bytes.extend_from_slice(&lane.to_le_bytes());
            }
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
        if op == HOME {
            return AtHome::decode(bytes).map(|at_home| Entry::Home(node, at_home));
        }
        let second = take_u64(&mut bytes)?;
        let noted = match op {
            EXCHANGE => {
                let (other, request) = (NodeId(second), take_u64(&mut bytes)?);
                Some(Noted::Exchange { request, one: node, other })
            }
            ATTRIBUTE => Some(Noted::Attribute { request: second, node }),
            _ => None,
        };
        if let Some(noted) = noted {
            // An older version counts no lanes.
            return Some(Entry::Asked(take_u16(&mut bytes).unwrap_or(EARLIER), noted));
        }
        let place = Place { parent: NodeId(second), name: bytes.into() };
        match op {
            BIND => Some(Entry::Bind(node, place)),
            UNBIND => Some(Entry::Unbind(node, place)),
            TOLD => Some(Entry::Told(node, place)),
            COUNT => Some(Entry::Count(node, second)),
            SPILLED => Some(Entry::Spilled { number: node.0, bytes: second }),
            _ => None,
        }
    }
}

/// What the roster knows of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    /// Its names.
    pub(crate) places: Places,
    /// How often, at the most, the kernel was told of it and has not forgotten it.
    pub(crate) count: u64,
    /// Which inode of the home it is.
    pub(crate) at_home: AtHome,
}

impl Remembered {
    /// The shortest entries that say this of the node.
    pub(crate) fn entries(&self, node: NodeId) -> Vec<Entry> {
        let place = |place: &Place| match self.count {
            1 if self.places.first() == Some(place) => Entry::Told(node, place.clone()),
            _ => Entry::Bind(node, place.clone()),
        };
        let count = (self.count != 1 && !self.places.is_empty()).then_some(self.count);
        let count = count.map(|count| Entry::Count(node, count));
        let is_told = self.at_home != AtHome::default() && !self.places.is_empty();
        let home = is_told.then_some(Entry::Home(node, self.at_home));
        home.into_iter().chain(self.places.iter().map(place)).chain(count).collect()
    }

    /// What makes this say what `wanted` says, of a node that both know: the inode first, since one
    /// that is told of without has never come home; a name goes when the others are there.
    fn corrections(&self, node: NodeId, wanted: &Remembered) -> Vec<Entry> {
        let home = (self.at_home != wanted.at_home).then_some(Entry::Home(node, wanted.at_home));
        let missing = wanted.places.iter().filter(|place| !self.places.contains(place));
        let missing = missing.map(|place| Entry::Bind(node, place.clone()));
        let needless = self.places.iter().filter(|place| !wanted.places.contains(place));
        let needless = needless.map(|place| Entry::Unbind(node, place.clone()));
        let count = (self.count != wanted.count).then_some(Entry::Count(node, wanted.count));
        home.into_iter().chain(missing).chain(count).chain(needless).collect()
    }
}

/// What is known of every node that an earlier front end told the kernel of.
pub(crate) type Known = HashMap<NodeId, Remembered>;

/// A roster that could not spill is written anew once the entries since the last time amount to one
/// in so many bytes of what it held then: so much may be gained, and so much at least each entry
/// pays for.
const WORTH_REWRITING: u64 = 16;
/// Bytes that a file of spilled entries may grow by, besides growing to twice what it began with,
/// before it is written anew.
const SPILL_SLACK_BYTES: u64 = 4 << 20;

/// The roster as this process writes it.
#[derive(Default)]
pub(crate) struct Roster {
    state: Mutex<State>,
}

/// What has become of the entries so far.
#[derive(Default)]
struct State {
    counts: Counts,
    /// Where the older entries are.
    spill: Option<Spill>,
    /// What that file held when it was begun.
    begun_bytes: u64,
    /// The file that the region names, by whichever process, and the next number.
    named: Option<u64>,
    next_number: u64,
    /// The home had no room when the roster was last full.
    has_no_room: bool,
}

/// Bytes of entries in the region, as encoded.
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
    /// Writes one entry; makes room from `known`, the state without the entry, when the region's
    /// part is full. `ENOSPC` if the home has no room either; at once, if asking again would hardly
    /// give any.
    pub(crate) fn note(
        &self,
        room: OwnRoom<'_>,
        log: &dyn CommitLog,
        entry: &Entry,
        known: impl FnOnce() -> Vec<Entry>,
    ) -> Result<(), Errno> {
        let bytes = entry.encode();
        let mut state = self.state();
        state.counts.asked += bytes.len() as u64;
        match log.note(&bytes) {
            Err(NoteError::Full) => state.make_room(room, log, entry, known)?,
            noted => return state.noted(&bytes, noted),
        }
        state.noted(&bytes, log.note(&bytes))
    }

    /// Has the roster of an earlier process say what `entries` say: anew or, where the home has no
    /// room for that, by what it says otherwise.
    pub(crate) fn take_over(
        &self,
        room: OwnRoom<'_>,
        log: &dyn CommitLog,
        entries: Vec<Entry>,
    ) -> Result<(), VolumeError> {
        let is_spilled = self.state().spill.is_some();
        match self.rewrite(room, log, entries.clone()) {
            Err(Errno::NOSPC | Errno::DQUOT) if is_spilled => {}
            rewritten => return rewritten.map_err(VolumeError::Home),
        }
        let (known, _) = self.known(room.home, log)?;
        for entry in corrections(known, &entries) {
            let noted = self.note(room, log, &entry, || entries.clone());
            noted.map_err(VolumeError::Home)?;
        }
        Ok(())
    }

    /// Replaces the roster's contents.
    pub(crate) fn rewrite(
        &self,
        room: OwnRoom<'_>,
        log: &dyn CommitLog,
        entries: Vec<Entry>,
    ) -> Result<(), Errno> {
        self.state().rewrite(room, log, entries)
    }

    /// What all entries come to, those of an earlier process.
    pub(crate) fn known(
        &self,
        home: &dyn Files,
        log: &dyn CommitLog,
    ) -> Result<(Known, Requests), VolumeError> {
        let (mut known, mut requests) = (Known::new(), Vec::new());
        let mut take = |entry| match entry {
            Entry::Asked(lane, noted) => requests.push((lane, noted)),
            entry => fold(&mut known, entry),
        };
        let mut state = self.state();
        let notes = log.notes().map_err(VolumeError::Names)?;
        for entry in notes.iter().filter_map(|bytes| Entry::decode(bytes)) {
            match entry {
                Entry::Spilled { number, bytes } => {
                    let spilled = state.take_up(home, number, bytes);
                    let spilled = spilled.map_err(|error| VolumeError::Home(error.into()))?;
                    spilled.iter().filter_map(|bytes| Entry::decode(bytes)).for_each(&mut take);
                }
                entry => take(entry),
            }
        }
        known.retain(|_, node| !node.places.is_empty() && node.count > 0);
        Ok((known, Requests::of_earlier(requests)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What the file has that the region names. It is gone on with where the home has no room for
    /// another.
    fn take_up(&mut self, home: &dyn Files, number: u64, bytes: u64) -> io::Result<Vec<Vec<u8>>> {
        (self.named, self.next_number) = (Some(number), number + 1);
        let spilled = match Spill::read(home, number, bytes) {
            // A region that outlived its machine names a file that may have gone with it, and
            // nobody knows the numbers in there either.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            spilled => spilled?,
        };
        self.spill = Some(Spill::adopt(home, number, bytes)?);
        self.begun_bytes = bytes;
        Ok(spilled)
    }

    /// Whether the entries since the last time can have made enough of the roster needless, where
    /// the home had no room then. Which name a known node has must not be missed for the want of
    /// any room that there is.
    fn is_worth_trying(&self, entry: &Entry) -> bool {
        let Counts { kept, asked, noted } = self.counts;
        let renames = matches!(entry, Entry::Bind(..) | Entry::Unbind(..) | Entry::Asked(..));
        !self.has_no_room || asked >= kept / WORTH_REWRITING || renames && noted > 0
    }

    fn noted(&mut self, bytes: &[u8], noted: Result<(), NoteError>) -> Result<(), Errno> {
        noted.map_err(errno_of)?;
        self.counts.noted += bytes.len() as u64;
        Ok(())
    }

    /// Moves what the region has behind what was spilled before, or writes all of it anew: where
    /// that is too much for the home, the file grows on.
    fn make_room(
        &mut self,
        room: OwnRoom<'_>,
        log: &dyn CommitLog,
        entry: &Entry,
        known: impl FnOnce() -> Vec<Entry>,
    ) -> Result<(), Errno> {
        if !self.is_worth_trying(entry) {
            return Err(Errno::NOSPC);
        }
        let spilled = self.spill.as_ref().map_or(0, |spill| spill.bytes);
        let is_long = spilled > 2 * self.begun_bytes + SPILL_SLACK_BYTES;
        let has_room = !is_long && self.spill_more(room, log).is_some()
            || self.rewrite(room, log, known()).is_ok()
            || is_long && self.spill_more(room, log).is_some();
        if has_room { Ok(()) } else { Err(Errno::NOSPC) }
    }

    /// None if there is no file yet, or if it takes no more.
    fn spill_more(&mut self, room: OwnRoom<'_>, log: &dyn CommitLog) -> Option<()> {
        let spill = self.spill.as_mut()?;
        let is_first =
            |bytes: &Vec<u8>| matches!(Entry::decode(bytes), Some(Entry::Spilled { .. }));
        let young = log.notes().ok()?.into_iter().filter(|bytes| !is_first(bytes));
        spill.append(room, young).ok()?;
        self.name_spill(log).ok()?;
        self.has_no_room = false;
        Some(())
    }

    /// Has the region name the file, and nothing else.
    fn name_spill(&mut self, log: &dyn CommitLog) -> Result<(), Errno> {
        let spill = self.spill.as_ref().expect("the caller has spilled");
        let name = Entry::Spilled { number: spill.number, bytes: spill.bytes }.encode();
        let kept = name.len() as u64;
        log.replace_notes(&mut [name].into_iter()).map_err(errno_of)?;
        self.counts = Counts { kept, asked: 0, noted: 0 };
        Ok(())
    }

    /// Writes all of it anew: into the region, if half of that is free then, or else into a file.
    fn rewrite(
        &mut self,
        room: OwnRoom<'_>,
        log: &dyn CommitLog,
        entries: Vec<Entry>,
    ) -> Result<(), Errno> {
        let total: u64 = entries.iter().map(|entry| entry.encode().len() as u64).sum();
        let held = self.counts.kept + self.counts.noted;
        let is_new = held == 0;
        if (is_new || total <= held / 2) && self.keep_in_region(room, log, &entries).is_ok() {
            return Ok(());
        }
        if self.spill_all(room, log, &entries).is_ok() {
            return Ok(());
        }
        self.has_no_room = true;
        self.keep_in_region(room, log, &entries)
    }

    fn keep_in_region(
        &mut self,
        room: OwnRoom<'_>,
        log: &dyn CommitLog,
        entries: &[Entry],
    ) -> Result<(), Errno> {
        let mut kept = 0;
        let encoded = entries.iter().map(Entry::encode);
        let replaced = log.replace_notes(&mut encoded.inspect(|bytes| kept += bytes.len() as u64));
        // One that failed has cost as much, and is not tried again any sooner.
        self.counts = Counts { kept, asked: 0, noted: 0 };
        replaced.map_err(errno_of)?;
        self.spill = None;
        self.let_go(room.home, None);
        Ok(())
    }

    /// Writes all of it into a new file; the old one counts until the region names the new one.
    fn spill_all(
        &mut self,
        room: OwnRoom<'_>,
        log: &dyn CommitLog,
        entries: &[Entry],
    ) -> Result<(), Errno> {
        let number = self.next_number;
        self.next_number += 1;
        let mut spill = Spill::create(room, number)?;
        if let Err(error) = spill.append(room, entries.iter().map(Entry::encode)) {
            Spill::remove(room.home, number);
            return Err(error.into());
        }
        self.begun_bytes = spill.bytes;
        self.spill = Some(spill);
        self.name_spill(log)?;
        self.has_no_room = false;
        self.let_go(room.home, Some(number));
        Ok(())
    }

    /// The region names this file now.
    fn let_go(&mut self, home: &dyn Files, named: Option<u64>) {
        if let Some(old) = std::mem::replace(&mut self.named, named) {
            Spill::remove(home, old);
        }
    }
}

fn errno_of(error: NoteError) -> Errno {
    match error {
        NoteError::Full => Errno::NOSPC,
        _ => Errno::IO,
    }
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
        Entry::Home(node, at_home) => known.entry(node).or_default().at_home = at_home,
        Entry::Asked(..) | Entry::Spilled { .. } => {}
        Entry::Unbind(node, place) => {
            if let Some(node) = known.get_mut(&node) {
                node.places.remove(&place);
            }
        }
        Entry::Drop(node) => {
            known.remove(&node);
        }
    }
}

/// What makes `known` say the same as `entries`. Whoever takes over between any two of them finds
/// every node that both know.
fn corrections(known: Known, entries: &[Entry]) -> Vec<Entry> {
    let mut wanted = Known::new();
    entries.iter().for_each(|entry| fold(&mut wanted, entry.clone()));
    let needless = known.keys().filter(|node| !wanted.contains_key(node));
    let mut corrections: Vec<_> = needless.map(|node| Entry::Drop(*node)).collect();
    for (node, wanted) in &wanted {
        match known.get(node) {
            Some(known) => corrections.extend(known.corrections(*node, wanted)),
            None => corrections.extend(wanted.entries(*node)),
        }
    }
    let is_asked = |entry: &&Entry| matches!(entry, Entry::Asked(..));
    corrections.extend(entries.iter().filter(is_asked).cloned());
    corrections
}

fn bind(node: &mut Remembered, place: Place) {
    node.places.put(place);
}

#[cfg(test)]
mod tests;
