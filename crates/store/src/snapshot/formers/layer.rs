//! A part of what is kept for snapshots: a layer for each of them.
//!
//! Promise: what a key was where a snapshot stands is in the first layer from its own on that has
//! the key; a layer that goes leaves to the one before it what that lacks.
//! Never: knows how many bytes there may be, or who is latched.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use holdfast_pages::{PageNumber, Rsn};

use crate::snapshot::former::Former;

/// What an entry takes besides its key and its value, about.
const ENTRY_BYTES: usize = 112;

/// By tree and key.
type Keys<T> = HashMap<PageNumber, HashMap<Vec<u8>, T>>;

/// What a key was.
pub(super) struct Entry {
    pub(super) tree: PageNumber,
    pub(super) key: Vec<u8>,
    pub(super) former: Former,
}

/// Layers, from that of the oldest snapshot to that of the newest.
#[derive(Default)]
pub(super) struct Layers(Vec<Layer>);

/// What is kept for one snapshot, and for older ones.
pub(super) struct Layer {
    number: u64,
    /// Where the snapshot stands; none if it does not know yet.
    at: Option<Rsn>,
    /// What keys were before they first changed from there on.
    formers: Keys<Former>,
    /// What they were before each change since it was announced, and where that stands, if it does
    /// not know its place yet.
    early: Keys<Vec<(Rsn, Former)>>,
}

impl Layer {
    /// That of a snapshot which does not know its place.
    pub(super) fn new(number: u64) -> Layer {
        Layer { number, at: None, formers: Keys::new(), early: Keys::new() }
    }

    /// What a key was before it first changed at `from` or behind it, as far as this layer goes.
    fn find(&self, tree: PageNumber, key: &[u8], from: Rsn) -> Option<&Former> {
        let early = || {
            let all = self.early.get(&tree)?.get(key)?;
            all.iter().find(|(rsn, _)| *rsn >= from).map(|(_, former)| former)
        };
        self.formers.get(&tree).and_then(|keys| keys.get(key)).or_else(early)
    }

    /// All that it has of a key.
    fn all_of(&self, tree: PageNumber, key: &[u8]) -> impl Iterator<Item = &Former> {
        let former = self.formers.get(&tree).and_then(|keys| keys.get(key));
        let early = self.early.get(&tree).and_then(|keys| keys.get(key));
        former.into_iter().chain(early.into_iter().flatten().map(|(_, former)| former))
    }

    fn remove(&mut self, tree: PageNumber, key: &[u8]) {
        self.formers.get_mut(&tree).and_then(|keys| keys.remove(key));
        self.early.get_mut(&tree).and_then(|keys| keys.remove(key));
    }

    /// Keeps this if it has nothing of the key. How many bytes that is.
    fn keep(&mut self, Entry { tree, key, former }: Entry) -> u64 {
        let bytes = bytes_of(&key, &former);
        match self.formers.entry(tree).or_default().entry(key) {
            Slot::Occupied(_) => 0,
            Slot::Vacant(vacant) => {
                vacant.insert(former);
                bytes
            }
        }
    }

    fn keep_early(&mut self, Entry { tree, key, former }: Entry, rsn: Rsn) -> u64 {
        let bytes = bytes_of(&key, &former);
        self.early.entry(tree).or_default().entry(key).or_default().push((rsn, former));
        bytes
    }

    fn bytes(&self) -> u64 {
        let formers = self.formers.values().flatten();
        let early = self.early.values().flatten();
        let early =
            early.flat_map(|(key, all)| all.iter().map(move |(_, former)| bytes_of(key, former)));
        formers.map(|(key, former)| bytes_of(key, former)).chain(early).sum()
    }
}

impl Layers {
    pub(super) fn push(&mut self, layer: Layer) {
        self.0.push(layer);
    }

    /// Whether the layer that is concerned by a change at `rsn` knows what the key was before it
    /// first changed there.
    pub(super) fn knows(&self, tree: PageNumber, key: &[u8], rsn: Rsn) -> bool {
        let newest = self.0.last();
        let newest = newest.filter(|newest| newest.at.is_some_and(|at| at <= rsn));
        newest.is_some_and(|newest| newest.find(tree, key, Rsn::NONE).is_some())
    }

    /// Keeps what a key was before the change that stands at `rsn`, in the layer that is concerned,
    /// if there is one and it has nothing of the key. How many bytes that is.
    pub(super) fn note(&mut self, entry: Entry, rsn: Rsn) -> u64 {
        for layer in self.0.iter_mut().rev() {
            match layer.at {
                None => return layer.keep_early(entry, rsn),
                Some(at) if at <= rsn => return layer.keep(entry),
                Some(_) => {}
            }
        }
        0
    }

    /// The newest snapshot has this number and stands here, unless it is over. Returns how many
    /// bytes less there are.
    pub(super) fn place(&mut self, number: u64, at: Rsn) -> u64 {
        let newest = self.0.last_mut().filter(|newest| newest.number == number);
        let Some(newest) = newest else { return 0 };
        newest.at = Some(at);
        let before = newest.bytes();
        let early = std::mem::take(&mut newest.early);
        before - self.note_all(early)
    }

    /// [`Layers::note`], of all that came while a snapshot did not know its place.
    fn note_all(&mut self, early: Keys<Vec<(Rsn, Former)>>) -> u64 {
        let mut kept = 0;
        for (tree, keys) in early {
            for (key, formers) in keys {
                for (rsn, former) in formers {
                    kept += self.note(Entry { tree, key: key.clone(), former }, rsn);
                }
            }
        }
        kept
    }

    /// What a key was where the snapshot of this number stands; none if it is as it was, or the
    /// snapshot is over.
    pub(super) fn find(&self, number: u64, tree: PageNumber, key: &[u8]) -> Option<Former> {
        let own = self.0.iter().position(|layer| layer.number == number)?;
        let from = self.0[own].at?;
        self.0[own..].iter().find_map(|layer| layer.find(tree, key, from)).cloned()
    }

    /// Whether the key had a value before some change of it that a snapshot does not show.
    pub(super) fn has_value(&self, tree: PageNumber, key: &[u8]) -> bool {
        let is_value = |former: &Former| matches!(former, Former::Value(_));
        self.0.iter().any(|layer| layer.all_of(tree, key).any(is_value))
    }

    /// Forgets a key, which every snapshot shows the absence of, as its leaf does. How many bytes
    /// less there are.
    pub(super) fn forget(&mut self, tree: PageNumber, key: &[u8]) -> u64 {
        let bytes = |layer: &mut Layer| {
            let bytes = layer.all_of(tree, key).map(|former| bytes_of(key, former)).sum::<u64>();
            layer.remove(tree, key);
            bytes
        };
        self.0.iter_mut().map(bytes).sum()
    }

    /// Takes a layer out; older ones get what they need of it. Returns the rest, to be dropped when
    /// nobody waits for that, and how many bytes less there are.
    pub(super) fn remove(&mut self, number: u64) -> (Option<Layer>, u64) {
        let Some(own) = self.0.iter().position(|layer| layer.number == number) else {
            return (None, 0);
        };
        let layer = self.0.remove(own);
        let bytes = layer.bytes();
        let Some(older) = own.checked_sub(1) else { return (Some(layer), bytes) };
        let older = &mut self.0[older];
        let mut kept = 0;
        for (tree, keys) in layer.formers {
            for (key, former) in keys {
                kept += older.keep(Entry { tree, key, former });
            }
        }
        kept += self.note_all(layer.early);
        (None, bytes - kept)
    }
}

fn bytes_of(key: &[u8], former: &Former) -> u64 {
    (ENTRY_BYTES + key.len() + former.bytes()) as u64
}
