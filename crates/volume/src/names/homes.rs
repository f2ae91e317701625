//! What the home has of a node: the inode that it is known by, and no other.
//!
//! Whoever got hold of a directory of the home before it was barred can rename in it, so a name of
//! the home may come to lead to another inode than the volume left there, and to one that its
//! finder has no right to. Therefore nothing is done to what a name leads to before it has been
//! recognized, and then to that inode, whatever becomes of the name.
//!
//! Which inode a node is, is known from when it was read or made, from the roster, which tells a
//! front end that takes over, and from the records, which tell one that starts from the log.
//!
//! Promise: what is got is what the node is known by. Where nothing is known of it, or the home's
//! file system gives numbers that mean nothing, it is what the name leads to.
//! Never: changes the home.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, Held, InodeNumbers, Kind, Metadata};

use super::{HomeInode, Names, ORPHANS, Place, inode_of};
use crate::clean::aside::Lost;
use crate::record::AtHome;
use holdfast_io::tree::other_inode;
use holdfast_io::tree::{Errno, NodeId, ROOT};

/// Stands for an inode that is not there any more.
const GONE: HomeInode = (u64::MAX, u64::MAX);

impl Names {
    /// Which home this is. What is said of another one's inodes is nothing to go by.
    pub(crate) fn mark_home(&mut self, home: &dyn Files, root: &Metadata) {
        let InodeNumbers::Kept(file_system) = home.inode_numbers() else { return };
        let bytes = [file_system.to_le_bytes(), root.inode.to_le_bytes()].concat();
        self.home_mark = (crc32c(0, &bytes) as u16).max(1);
    }

    /// What the log says of the inodes of nodes that are not at hand.
    pub(crate) fn tell_homes(&mut self, told: HashMap<NodeId, AtHome>) {
        self.told = told;
    }

    /// Whether the roster tells of every node which inode it is.
    pub(crate) fn rely_on_roster(&mut self, tells_inodes: bool) {
        self.roster_tells = tells_inodes;
    }

    /// The nodes that the log speaks of are at hand, or known to the roster alone.
    pub(crate) fn end_told(&mut self) {
        for (node, told) in std::mem::take(&mut self.told) {
            if let Some(known) = self.known.get_mut(&node)
                && known.at_home == AtHome::default()
            {
                known.at_home = told;
            }
        }
    }

    /// Which inode a node is, for who writes that down; what the roster says of one not at hand.
    pub(crate) fn at_home(&self, node: NodeId) -> AtHome {
        let Some(entry) = self.entry(node) else {
            return self.known.get(&node).map_or(AtHome::default(), |known| known.at_home);
        };
        let known = entry.home_inode.filter(|_| self.home_mark != 0);
        known.map_or(AtHome::default(), |(_, inode)| AtHome { inode, home: self.home_mark })
    }

    /// The same for who writes it into the log, where nobody takes it back.
    pub(crate) fn lasting_home(&self, node: NodeId) -> AtHome {
        match self.just_made.contains(&node) {
            true => AtHome::default(),
            false => self.at_home(node),
        }
    }

    /// There is no room to tell in the roster which inode each node is.
    pub(crate) fn omit_inodes(&self) {
        self.omits_inodes.store(true, Ordering::Relaxed);
    }

    /// What the roster tells of a node.
    pub(crate) fn noted_home(&self, node: NodeId) -> AtHome {
        match self.omits_inodes.load(Ordering::Relaxed) {
            true => AtHome::default(),
            false => self.at_home(node),
        }
    }

    /// What somebody wrote down, if it is of this home.
    fn of_this_home(&self, noted: AtHome) -> Option<u64> {
        let is_here = self.home_mark != 0 && noted.home == self.home_mark && noted.inode != 0;
        is_here.then_some(noted.inode)
    }

    /// What is written of a node that is not at hand. The roster may know of a later making.
    fn told_inode(&self, node: NodeId) -> Option<u64> {
        let noted = self.known.get(&node).and_then(|known| self.of_this_home(known.at_home));
        noted.or_else(|| self.told.get(&node).and_then(|told| self.of_this_home(*told)))
    }

    /// Takes hold of what the home has of a node; none if it has nothing.
    pub(crate) fn hold(&self, home: &dyn Files, node: NodeId) -> io::Result<Option<Box<dyn Held>>> {
        self.home_path(node).map(|path| self.hold_at(home, node, &path)).transpose()
    }

    /// The same by one of the names that the home has, or should have, for it.
    pub(crate) fn hold_at(
        &self,
        home: &dyn Files,
        node: NodeId,
        path: &Path,
    ) -> io::Result<Box<dyn Held>> {
        let held = home.hold(path)?;
        match self.may_be(home, node, &held.metadata()?) {
            true => Ok(held),
            false => Err(other_inode()),
        }
    }

    /// The same of a directory whose number is not at hand.
    pub(crate) fn hold_directory(
        &self,
        home: &dyn Files,
        path: &Path,
    ) -> io::Result<Box<dyn Held>> {
        let held = home.hold(path)?;
        let found = held.metadata()?;
        let node = self.by_home_inode.get(&inode_of(&found));
        let stands_there = |node: &NodeId| self.home_path(*node).is_some_and(|is| is == path);
        let is_other = self.home_mark != 0
            && found.kind == Kind::Directory
            && node.is_some_and(|node| self.entry(*node).is_some() && !stands_there(node));
        if is_other { Err(other_inode()) } else { Ok(held) }
    }

    /// False if it is known that the node is another inode, or that it is not there at all.
    pub(crate) fn may_be(&self, home: &dyn Files, node: NodeId, found: &Metadata) -> bool {
        let entry = self.entry(node);
        if entry.is_some_and(|entry| entry.kind != found.kind) {
            return false;
        }
        let known = entry.and_then(|entry| entry.home_inode);
        let is_known = known.is_none_or(|known| known == inode_of(found));
        match home.inode_numbers() {
            InodeNumbers::Kept(_) => match self.told_inode(node).filter(|_| known.is_none()) {
                Some(inode) => inode == found.inode,
                None => is_known && (known.is_some() || !self.has_never_come_home(node)),
            },
            InodeNumbers::KeptUntilChanged => is_known || found.kind == Kind::Directory,
            InodeNumbers::NotKept => true,
        }
    }

    /// True if what was found is known to be another node than this.
    pub(crate) fn is_another(&self, node: NodeId, found: &Metadata) -> bool {
        self.by_home_inode.get(&inode_of(found)).is_some_and(|other| *other != node)
    }

    /// True if it is known which inode the node is.
    pub(crate) fn knows_inode(&self, node: NodeId) -> bool {
        let known = self.entry(node).and_then(|entry| entry.home_inode);
        let is_at_hand = self.home_mark != 0 && known.is_some_and(|known| known != GONE);
        is_at_hand || self.told_inode(node).is_some()
    }

    /// The log has been followed to its end: what is at hand and has not come home by then is made
    /// by a record that is still to be applied.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// The home is never to have these nodes.
    pub(crate) fn never_come_home(&mut self, nodes: &BTreeSet<NodeId>) {
        self.unmade.extend(nodes);
    }

    /// What an earlier process told of nodes that are lost is where they would be. If another has
    /// come to stand there since, that is found by the name.
    pub(crate) fn yield_lost(&mut self, lost: &Lost) {
        let known = self.known.iter();
        let places = known.flat_map(|(node, known)| known.places.iter().map(|it| (*node, it)));
        let mut places: Vec<_> = places.collect();
        places.sort_by_key(|(node, _)| (!lost.has(*node), *node));
        let places = places.into_iter().map(|(node, place)| (place.clone(), node));
        self.known_by_place = places.collect();
    }

    /// Another may be found under the number of a node that has no name on the home, as far as that
    /// is known. What the node was stays known of it: it may have a name there that memory has let
    /// go of, or that somebody else gave it.
    pub(super) fn leave_inode(&mut self, node: NodeId) {
        let Some(entry) = self.entries.get(&node).filter(|entry| entry.home.is_empty()) else {
            return;
        };
        if let Some(inode) = entry.home_inode
            && self.by_home_inode.get(&inode) == Some(&node)
        {
            self.by_home_inode.remove(&inode);
        }
    }

    /// True if the home has never had a node of which no inode is known.
    fn has_never_come_home(&self, node: NodeId) -> bool {
        let is_noted = |noted: AtHome| self.roster_tells && self.of_this_home(noted).is_none();
        let is_left_out = self.known.get(&node).is_some_and(|known| is_noted(known.at_home));
        let is_at_hand = self.is_complete && self.entry(node).is_some();
        let is_own = node == ROOT || node == ORPHANS;
        let is_told = is_at_hand || is_left_out || self.unmade.contains(&node);
        self.home_mark != 0 && !is_own && is_told
    }

    /// A window has made the node, and it is this inode until the window is repeated.
    pub(crate) fn learn_made(&mut self, node: NodeId, found: &Metadata) {
        self.just_made.insert(node);
        self.learn(node, found);
    }

    /// Nobody repeats the window any more that made nodes.
    pub(crate) fn end_making(&mut self) {
        self.just_made.clear();
    }

    /// The node is this inode of the home: it was made so, or has been changed.
    pub(crate) fn learn(&mut self, node: NodeId, found: &Metadata) {
        if self.entries.contains_key(&node) {
            return self.note_inode(inode_of(found), node);
        }
        let at_home = AtHome { inode: found.inode, home: self.home_mark };
        self.told.insert(node, at_home);
        if let Some(known) = self.known.get_mut(&node) {
            known.at_home = at_home;
        }
    }

    /// The node was read from this inode of the home. If it is known to be another, or never to
    /// have come home, it stays so, and nothing is done to the one that was found.
    pub(crate) fn note_read(
        &mut self,
        node: NodeId,
        (device, found): HomeInode,
        noted: Option<AtHome>,
    ) {
        let inode = noted.and_then(|noted| self.of_this_home(noted));
        match (inode.or_else(|| self.told_inode(node)), noted) {
            (Some(known), _) if known == found => self.note_inode((device, found), node),
            (Some(known), _) => self.expect_inode((device, known), node),
            (None, Some(noted)) if !self.is_as_noted(noted, (device, found)) => {
                if let Some(entry) = self.entries.get_mut(&node) {
                    entry.home_inode = Some(GONE);
                }
            }
            _ => self.note_inode((device, found), node),
        }
    }

    /// The node is this inode, which is not what was found. Another that was found under the number
    /// has it: a number that comes free is given to the next.
    fn expect_inode(&mut self, inode: HomeInode, node: NodeId) {
        self.by_home_inode.entry(inode).or_insert(node);
        if let Some(entry) = self.entries.get_mut(&node) {
            entry.home_inode = Some(inode);
        }
    }

    /// The node is this inode. A number that another node was known by has been given anew: what
    /// that was has been removed by somebody else.
    pub(crate) fn note_inode(&mut self, inode: HomeInode, node: NodeId) {
        let before = self.by_home_inode.insert(inode, node).filter(|before| *before != node);
        let before = before.and_then(|before| self.entries.get_mut(&before));
        if let Some(entry) = before.filter(|entry| entry.home_inode == Some(inode)) {
            entry.home_inode = Some(GONE);
        }
        if let Some(entry) = self.entries.get_mut(&node) {
            entry.home_inode = Some(inode);
        }
    }

    /// The home has moved the node from one path to another, in the directory `parent`.
    pub(crate) fn moved_home(
        &mut self,
        home: &dyn Files,
        node: NodeId,
        from: &[u8],
        (parent, to): (NodeId, &[u8]),
    ) {
        let inode = self.entry(node).and_then(|entry| entry.home_inode);
        self.left_home(home, node, from);
        self.came_home(node, parent, to);
        if let Some(inode) = inode {
            self.note_inode(inode, node);
        }
    }

    /// Whether what stands at a place of the home may be a node that the roster knows. One of which
    /// it does not tell an inode has never come home.
    pub(crate) fn is_as_noted(&self, noted: AtHome, (_, found): HomeInode) -> bool {
        let believes = self.home_mark == 0 || !self.roster_tells;
        self.of_this_home(noted).map_or(believes, |noted| noted == found)
    }

    /// Takes hold of what stands at a place of the home.
    pub(crate) fn hold_place(
        &self,
        home: &dyn Files,
        place: &Place,
    ) -> Result<Box<dyn Held>, Errno> {
        let path = self.home_path_of(place).ok_or(Errno::STALE)?;
        Ok(home.hold(&path)?)
    }
}
