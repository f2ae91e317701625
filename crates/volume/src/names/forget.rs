//! Forgetting nodes, and removing what nobody can reach then.
//!
//! Promise: a forget cannot fail, and waits for nothing. Once nobody remembers a file without a
//! name, a record that removes it follows: at once, or in the first step of the cleaner that finds
//! room for it. What an earlier process has left so is found when it is taken over from.
//! Never: counts what removes a file as anybody's share of the log: it is as short as a name, and
//! gives room back.

use crate::error::Stop;
use crate::names::Names;
use crate::names::roster::Entry as RosterEntry;
use crate::record::{AtHome, Op, Record};
use crate::volume::DirectoryVolume;
use holdfast_io::tree::NodeId;
use holdfast_io::tree::{Asker, on_behalf_of};

impl DirectoryVolume {
    /// A front end gives back `count` findings; with the last one goes what nobody can reach.
    pub(crate) fn forget_node(&self, id: NodeId, count: u64) {
        if self.give_back(id, count) != Some(0) {
            return;
        }
        let mut names = self.names_mut();
        // A full roster only means that the next front end knows one node too many.
        let told = names.told_count(id);
        if told > 0 {
            // Somebody looked the name up meanwhile.
            let _ = self.note(&names, &RosterEntry::Count(id, told));
            return;
        }
        let _ = self.note(&names, &RosterEntry::Drop(id));
        names.note_if_forgotten(id);
        self.remove_if_unreachable(&mut names, id);
        names.drop_if_clean(id, self.log.marks().released);
    }

    /// Counts findings that were given back, of a node that is at hand or not: nobody gives them
    /// back again. Returns how many are left.
    fn give_back(&self, id: NodeId, count: u64) -> Option<u64> {
        let names = self.names();
        let Some(entry) = names.entry(id) else {
            drop(names);
            let mut names = self.names_mut();
            let left = names.give_back(id, count)?;
            self.note_left_over(&names, id, left);
            return Some(left);
        };
        let _turn = self.counting();
        let left = entry.node.forget(count);
        self.note_left_over(&names, id, left);
        Some(left)
    }

    /// Without the note the next front end keeps the node for longer than it must.
    fn note_left_over(&self, names: &Names, id: NodeId, left: u64) {
        if left > 0 {
            let _ = self.note(names, &RosterEntry::Count(id, left));
        }
    }

    /// Removes what nobody can reach. Returns whether some of it has to wait on.
    pub(crate) fn remove_unreachable(&self) -> bool {
        let unreachable = self.names().unreachable();
        let has_to_wait = |id: &&NodeId| !self.remove_if_unreachable(&mut self.names_mut(), **id);
        unreachable.iter().filter(has_to_wait).count() > 0
    }

    /// False if the node is to be removed, and cannot be yet.
    fn remove_if_unreachable(&self, names: &mut Names, id: NodeId) -> bool {
        let removed = on_behalf_of(Asker::default(), || self.try_remove(names, id));
        if removed.is_ok() {
            names.is_dealt_with(id);
        }
        removed.is_ok()
    }

    /// Logs the removal of a file without a name, unless somebody remembers it by now.
    fn try_remove(&self, names: &mut Names, id: NodeId) -> Result<(), Stop> {
        names.revive_unreachable(&*self.home, id)?;
        let Some(entry) = names.entry(id) else { return Ok(()) };
        let Some(place) = names.orphan_place(id).cloned() else { return Ok(()) };
        // The home keeps what is immutable there.
        if entry.node.is_remembered() || entry.node.body().is_fixed {
            return Ok(());
        }
        let other = entry.places.iter().find(|other| other.parent != place.parent);
        let survivor = match other {
            Some(other) => names.path_in(other.parent, &other.name)?,
            None => Vec::new(),
        };
        let last = entry.node.body().attributes.links == 0;
        let path = names.path_in(place.parent, &place.name)?;
        let (at_home, at_ns) = (AtHome::default(), self.clock.utc_ns());
        let op = Op::Remove { survivor: &survivor, last };
        let mut payload = Vec::new();
        Record { node: id, parent: place.parent, path: &path, at_home, at_ns, op }
            .encode(&mut payload);
        let appended = self.log_frame(1, &payload)?;
        entry.node.body_mut().last = appended.lsn;
        names.unbind(place.parent, &place.name);
        names.forget_place(id, &place);
        Ok(())
    }
}
