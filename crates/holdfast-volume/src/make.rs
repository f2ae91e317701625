//! Making names: of new nodes, and further ones of nodes that are there.
//!
//! Promise: each change is one frame. The name is there, and its node remembered, when it returns.
//! Never: touches the home; a name comes there when the cleaner comes to its frame.

use std::sync::Arc;

use holdfast_io::Kind;

use crate::names::Names;
use crate::node::Node;
use crate::read::check_name;
use crate::record::{Op, Record};
use crate::tree::{Attributes, Errno, NewNode, NodeId};
use crate::volume::{DirectoryVolume, Stop};
use crate::words;

const SET_GROUP_ID: u32 = 0o2000;

impl DirectoryVolume {
    /// A new node under a name that is free.
    pub(crate) fn make_node(
        &self,
        parent: NodeId,
        name: &[u8],
        new: &NewNode<'_>,
    ) -> Result<Attributes, Errno> {
        check_name(parent, name)?;
        self.node(parent)?;
        self.with_room(|| {
            let mut names = self.names_mut();
            names.load(&*self.home, parent)?;
            if names.child(parent, name).is_some() {
                return Err(Errno::EXIST.into());
            }
            self.make_once(&mut names, parent, name, new)
        })
    }

    fn make_once(
        &self,
        names: &mut Names,
        parent: NodeId,
        name: &[u8],
        new: &NewNode<'_>,
    ) -> Result<Attributes, Stop> {
        self.space.admit(&*self.home, &*self.clock, 0, || self.waiting_bytes())?;
        let path = names.path_in(parent, name)?;
        let above = names.entry(parent).ok_or(Errno::STALE)?.node.body().attributes;
        let inherits = above.mode & SET_GROUP_ID != 0;
        let gid = if inherits { above.gid } else { new.gid };
        let keeps = inherits && new.kind == Kind::Directory;
        let mode = if keeps { new.mode | SET_GROUP_ID } else { new.mode };
        let id = names.new_id();
        let at_ns = self.clock.utc_ns();
        let NewNode { kind, uid, rdev, target, .. } = *new;
        let op = Op::Make { kind, mode, uid, gid, rdev, target };
        let mut payload = Vec::new();
        Record { node: id, parent, path: &path, at_ns, op }.encode(&mut payload);
        let appended = self.log_frame(1, &payload, &[])?;
        let attributes = made(id, &op, at_ns).expect("the operation is Make");
        let node = Arc::new(Node::from_log(attributes, target.to_vec(), appended.lsn));
        names.put_made(node.clone(), kind, parent, name);
        names.touch_directory(parent, at_ns, i64::from(kind == Kind::Directory));
        self.log.add_to_word(words::CHANGES, 1);
        self.remember(names, &node, parent, name)?;
        Ok(attributes)
    }

    /// A second name for a node that is no directory.
    pub(crate) fn link_node(
        &self,
        id: NodeId,
        parent: NodeId,
        name: &[u8],
    ) -> Result<Attributes, Errno> {
        check_name(parent, name)?;
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
            let (from, to) = (names.path(id)?, names.path_in(parent, name)?);
            let at_ns = self.clock.utc_ns();
            let mut payload = Vec::new();
            let op = Op::Link { to: &to };
            Record { node: id, parent, path: &from, at_ns, op }.encode(&mut payload);
            let appended = self.log_frame(1, &payload, &[])?;
            names.bind(parent, name, kind, id);
            names.touch_directory(parent, at_ns, 0);
            self.log.add_to_word(words::CHANGES, 1);
            let attributes = {
                let mut body = node.body_mut();
                body.attributes.links += 1;
                body.attributes.changed_ns = at_ns;
                body.last = appended.lsn;
                body.attributes
            };
            self.remember(&names, &node, parent, name)?;
            Ok(attributes)
        })
    }
}

/// The attributes of a node that `Make` brings to be.
pub(crate) fn made(node: NodeId, op: &Op<'_>, at_ns: i64) -> Option<Attributes> {
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
        allocated_bytes: 0,
        links,
        rdev,
        accessed_ns: at_ns,
        modified_ns: at_ns,
        changed_ns: at_ns,
    })
}
