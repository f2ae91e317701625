//! Files among the orphans that nobody can reach any more.
//!
//! Promise: a file without a name that nobody remembers is known here until a record has removed
//! it, whichever process made it one.
//! Never: logs anything, or changes the home.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::{Files, Kind};

use super::{Names, ORPHANS, Place, read_node};
use crate::names::roster::Remembered;
use crate::own;
use holdfast_io::tree::{Errno, NodeId};

impl Names {
    /// The name that a node has among the orphans.
    pub(crate) fn orphan_place(&self, node: NodeId) -> Option<&Place> {
        let places = match self.entry(node) {
            Some(entry) => &entry.places,
            None => &self.known(node)?.places,
        };
        places.orphan()
    }

    /// How often front ends were told of a node, and have not forgotten it.
    pub(crate) fn told_count(&self, node: NodeId) -> u64 {
        match self.entry(node) {
            Some(entry) => entry.node.remembered(),
            None => self.known(node).map_or(0, |known| known.count),
        }
    }

    /// Takes back `count` findings of a node, which may not be at hand. Returns how many are left;
    /// none if nobody was told of it.
    pub(crate) fn give_back(&mut self, node: NodeId, count: u64) -> Option<u64> {
        if let Some(entry) = self.entry(node) {
            return Some(entry.node.forget(count));
        }
        let known = self.known.get_mut(&node)?;
        known.count = known.count.saturating_sub(count);
        Some(known.count)
    }

    /// Nobody may remember the node any more: then it is let go of, or has to be removed.
    pub(crate) fn note_if_forgotten(&mut self, node: NodeId) {
        if self.told_count(node) > 0 {
            return;
        }
        match self.orphan_place(node) {
            Some(_) => drop(self.unreachable.insert(node)),
            None => self.forget_known(node),
        }
    }

    /// Those that have to be removed.
    pub(crate) fn unreachable(&self) -> Vec<NodeId> {
        self.unreachable.iter().copied().collect()
    }

    /// It is removed, or somebody has met it by another name.
    pub(crate) fn is_dealt_with(&mut self, node: NodeId) {
        self.unreachable.remove(&node);
    }

    /// Makes a node present that has to be removed. An error if the home cannot tell now; a node
    /// that it does not have needs nothing.
    pub(crate) fn revive_unreachable(
        &mut self,
        home: &dyn Files,
        node: NodeId,
    ) -> Result<(), Errno> {
        if self.known(node).is_none() || self.revive(home, node).is_ok() {
            return Ok(());
        }
        let is_gone = |place: &Place| {
            let found = self.home_path_of(place).map(|path| home.metadata(&path));
            found.is_none_or(|found| {
                found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
            })
        };
        let are_gone = |known: &Remembered| known.places.iter().all(is_gone);
        if !self.known(node).is_none_or(are_gone) {
            return Err(Errno::STALE);
        }
        self.forget_known(node);
        Ok(())
    }

    /// Finds what earlier processes have left: of the nodes at hand, and of the home. A file of the
    /// home that no node is gets a number of its own, as the one in its name may be another's by
    /// now; but not if the kernel knows that number, nor if it has another name to live on by.
    /// What a home does not list now is found by the next process.
    pub(crate) fn find_unreachable(&mut self, home: &dyn Files) {
        let at_hand: Vec<NodeId> = self.entries.keys().copied().collect();
        at_hand.into_iter().for_each(|node| self.note_if_forgotten(node));
        if !matches!(own::fault(home), Ok(None)) {
            return;
        }
        let listing = home.read_dir(Path::new(own::NAME)).unwrap_or_default();
        let taken = self.orphan_places();
        for item in listing.into_iter().filter(|item| item.kind == Kind::File) {
            let Some(number) = own::orphan_number(&item.name) else { continue };
            let place = Place { parent: ORPHANS, name: item.name.into() };
            if self.told_count(NodeId(number)) == 0 && !taken.contains(&place) {
                self.take_in_unreachable(home, place);
            }
        }
    }

    /// The places among the orphans that nodes have, today or on the home.
    fn orphan_places(&self) -> HashSet<Place> {
        let at_hand = self.entries.values().flat_map(|entry| [&entry.places, &entry.home]);
        let all = at_hand.chain(self.known.values().map(|known| &known.places));
        let places = all.flat_map(|places| places.iter());
        places.filter(|place| place.parent == ORPHANS).cloned().collect()
    }

    fn take_in_unreachable(&mut self, home: &dyn Files, place: Place) {
        let id = self.new_id();
        let read = self.hold_place(home, &place).and_then(|held| read_node(&*held, id));
        let Ok((node, inode)) = read else { return };
        let links = std::mem::take(&mut node.body_mut().attributes.links);
        if links == 1 {
            self.put(Arc::new(node), Kind::File, Some(place.clone()), Some(place));
            self.note_inode(inode, id);
            self.unreachable.insert(id);
        }
    }
}
