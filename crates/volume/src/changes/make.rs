//! Making names: of new nodes, and further ones of nodes that are there.
//!
//! Promise: each change is one frame. The name is there, and its node remembered, when it returns.
//! Never: touches the home; a name comes there when the cleaner comes to its frame.

use std::sync::Arc;

use holdfast_io::Kind;
use holdfast_io::acl::{Acl, DEFAULT};

use crate::changes::remove::orphan_place;
use crate::changes::xattr::{handed_down, op_of};
use crate::error::Stop;
use crate::home::room_unit::RoomUnit;
use crate::home::space::Cost;
use crate::names::roster::Entry as RosterEntry;
use crate::names::{Names, ORPHANS, Place};
use crate::node::Node;
use crate::record::{AtHome, Op, Record};
use crate::volume::DirectoryVolume;
use crate::words;
use holdfast_io::tree::{Attributes, Errno, NewNode, NodeId};

const SET_GROUP_ID: u32 = 0o2000;

impl DirectoryVolume {
    /// A new node under a name that is free.
    pub(crate) fn make_node(
        &self,
        parent: NodeId,
        name: &[u8],
        new: &NewNode<'_>,
    ) -> Result<Attributes, Errno> {
        self.check_name(parent, name)?;
        self.node(parent)?;
        self.with_room(|| {
            let mut names = self.names_mut();
            names.load(&*self.home, parent)?;
            if names.child(parent, name).is_some() {
                return Err(Errno::EXIST.into());
            }
            let id = names.new_id();
            let place = Place { parent, name: name.into() };
            self.make_once(&mut names, id, parent, &place, new)
        })
    }

    /// A new file that lives among those that have lost their name.
    pub(crate) fn make_unnamed_node(
        &self,
        directory: NodeId,
        new: &NewNode<'_>,
    ) -> Result<Attributes, Errno> {
        self.node(directory)?;
        self.with_room(|| {
            let mut names = self.names_mut();
            if !names.is_reachable(directory) {
                return Err(Errno::NOENT.into());
            }
            let id = names.new_id();
            let place = orphan_place(id, self.log.marks().tail);
            self.make_once(&mut names, id, directory, &place, new)
        })
    }

    fn make_once(
        &self,
        names: &mut Names,
        id: NodeId,
        directory: NodeId,
        place: &Place,
        new: &NewNode<'_>,
    ) -> Result<Attributes, Stop> {
        let Place { parent, name } = place;
        let parent = *parent;
        let path = names.path_in(parent, name)?;
        let above = names.loose(directory)?;
        names.admit_made(&*self.home, directory, new.kind)?;
        self.tried.admit(&*self.home, new)?;
        let inherits = above.mode & SET_GROUP_ID != 0;
        let gid = if inherits { above.gid } else { new.gid };
        let keeps = inherits && new.kind == Kind::Directory;
        let default = self.default_acl(names, directory)?;
        let (mode, lists) = handed_down(default.as_ref(), new.kind, new.mode, new.umask);
        let mode = if keeps { mode | SET_GROUP_ID } else { mode };
        let unit = self.space.unit;
        let given: Vec<_> = lists.iter().map(|(name, list)| (*name, &**list)).collect();
        let lists_cost = self.space.cost_of_xattrs(&*self.home, &given);
        let charge = self.admit(Cost::of_node(unit).plus(lists_cost))?;
        self.admit_lists(&lists)?;
        let at_ns = self.clock.utc_ns();
        let NewNode { kind, uid, rdev, target, .. } = *new;
        let op = Op::Make { kind, mode, uid, gid, rdev, target };
        let mut payload = Vec::new();
        Record { node: id, parent, path: &path, at_home: AtHome::default(), at_ns, op }
            .encode(&mut payload);
        for (name, value) in &lists {
            let op = op_of(name, Some(value));
            Record { node: id, parent, path: &path, at_home: AtHome::default(), at_ns, op }
                .encode(&mut payload);
        }
        let appended = self.log_frame(1 + lists.len() as u16, &payload)?;
        charge.placed(appended.lsn);
        let mut attributes = made(id, &op, at_ns, unit).expect("the operation is Make");
        if parent == ORPHANS {
            attributes.links = 0;
        }
        let node = Arc::new(Node::from_log(attributes, target.to_vec(), appended.lsn, unit));
        for (name, value) in lists {
            node.body_mut().xattrs.set(name, Some(value), appended.lsn);
        }
        names.put_made(node.clone(), kind, parent, name);
        names.touch_directory(parent, at_ns, i64::from(kind == Kind::Directory));
        self.log.add_to_word(words::CHANGES, 1);
        let told = self.remember(names, &node, parent, name);
        // One without a name that nobody is told of goes again.
        names.note_if_forgotten(id);
        told?;
        Ok(attributes)
    }

    /// The list that a directory hands down, if it has one.
    fn default_acl(&self, names: &Names, directory: NodeId) -> Result<Option<Acl>, Errno> {
        let node = &names.entry(directory).ok_or(Errno::STALE)?.node;
        if !node.body().xattrs.is_known() {
            self.know_xattrs(names, directory, &mut node.body_mut())?;
        }
        Ok(node.body().xattrs.acl(DEFAULT))
    }

    /// A second name for a node that is no directory, or a first one for a file without.
    pub(crate) fn link_node(
        &self,
        id: NodeId,
        parent: NodeId,
        name: &[u8],
    ) -> Result<Attributes, Errno> {
        self.check_name(parent, name)?;
        self.node(id)?;
        self.node(parent)?;
        self.with_room(|| {
            let mut names = self.names_mut();
            names.load(&*self.home, parent)?;
            if names.child(parent, name).is_some() {
                return Err(Errno::EXIST.into());
            }
            let entry = names.entry(id).ok_or(Errno::STALE)?;
            let (node, kind) = (entry.node.clone(), entry.kind);
            if kind == Kind::Directory {
                return Err(Errno::PERM.into());
            }
            names.loose(parent)?;
            let now_in = names.parent(id);
            names.admit_moved(&*self.home, id, now_in, parent)?;
            match self.space.limits(&*self.home)?.links_max {
                links_max if names.loose(id)?.links < links_max => {}
                // As from a file system that has no links.
                1 => return Err(Errno::PERM.into()),
                _ => return Err(Errno::MLINK.into()),
            }
            let charge = self.admit(self.space.cost_of_link(&*self.home))?;
            let (from, to) = (names.path(id)?, names.path_in(parent, name)?);
            let orphan = names.entry(id).and_then(|entry| entry.places.first());
            let orphan = orphan.filter(|place| place.parent == ORPHANS).cloned();
            let at_ns = self.clock.utc_ns();
            let mut payload = Vec::new();
            let op = match orphan {
                Some(_) => Op::Rename { to: &to, replaced: NodeId(0) },
                None => Op::Link { to: &to },
            };
            Record { node: id, parent, path: &from, at_home: AtHome::default(), at_ns, op }
                .encode(&mut payload);
            let appended = self.log_frame(1, &payload)?;
            charge.placed(appended.lsn);
            if let Some(orphan) = &orphan {
                names.unbind(ORPHANS, &orphan.name);
                names.forget_place(id, orphan);
            }
            names.bind(parent, name, kind, id);
            names.touch_directory(parent, at_ns, 0);
            self.log.add_to_word(words::CHANGES, 1);
            let attributes = {
                let mut body = node.body_mut();
                body.attributes.links += 1;
                body.attributes.changed_ns = at_ns.into();
                body.last = appended.lsn;
                body.attributes
            };
            self.remember(&names, &node, parent, name)?;
            if let Some(orphan) = orphan {
                self.note(&names, &RosterEntry::Unbind(id, orphan))?;
            }
            Ok(attributes)
        })
    }
}

/// The attributes of a node that `Make` brings to be.
pub(crate) fn made(node: NodeId, op: &Op<'_>, at_ns: i64, unit: RoomUnit) -> Option<Attributes> {
    let Op::Make { kind, mode, uid, gid, rdev, target, .. } = *op else { return None };
    let size_bytes = if kind == Kind::Symlink { target.len() as u64 } else { 0 };
    let links = if kind == Kind::Directory { 2 } else { 1 };
    Some(Attributes {
        node,
        kind,
        mode,
        uid,
        gid,
        size_bytes,
        allocated_bytes: if kind == Kind::Directory { unit.bytes() } else { 0 },
        links,
        rdev,
        accessed_ns: at_ns.into(),
        modified_ns: at_ns.into(),
        changed_ns: at_ns.into(),
    })
}
