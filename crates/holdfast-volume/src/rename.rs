//! Changing names.
//!
//! Promise: each change is one frame, so a rename that replaces is there wholly or not at all. A
//! file that loses its last name while a program has it open goes on living among the orphans.
//! Never: touches the home; a name is changed there when the cleaner comes to its frame.

use std::sync::Arc;

use holdfast_io::Kind;
use holdfast_log::Lsn;

use crate::names::{Child, Names, ORPHANS, Place};
use crate::node::Node;
use crate::read::check_name;
use crate::record::{Op, Record};
use crate::roster::Entry as RosterEntry;
use crate::tree::{Attributes, Errno, NewNode, NodeId, RenameHow};
use crate::volume::{DirectoryVolume, Stop};
use crate::words;

const SET_GROUP_ID: u32 = 0o2000;

/// A name that is about to go: its node, and what is left of it.
struct Leaving {
    node: Arc<Node>,
    place: Place,
    path: Vec<u8>,
    /// Another path of the node, if one is known.
    survivor: Vec<u8>,
    links: u32,
    /// Where it goes on living, if a program has it open and this is its last name.
    orphan: Option<Place>,
}

/// What a rename puts something in the place of.
enum Replaced {
    Nothing,
    File(Leaving),
    /// An empty one.
    Directory(Arc<Node>),
}

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
        self.space.admit(&*self.home, &*self.clock, 0, self.waiting_bytes())?;
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
        words::count(&self.region, words::CHANGES, 1);
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
            words::count(&self.region, words::CHANGES, 1);
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

    /// Takes a name away that is no directory's.
    pub(crate) fn remove_name(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        check_name(parent, name)?;
        self.node(parent)?;
        self.with_room(|| {
            let mut names = self.names_mut();
            names.load(&*self.home, parent)?;
            let child = names.child(parent, name).ok_or(Errno::NOENT)?;
            if child.kind == Kind::Directory {
                return Err(Errno::ISDIR.into());
            }
            let leaving = self.leaving(&mut names, parent, name)?;
            let at_ns = self.clock.utc_ns();
            let mut payload = Vec::new();
            let records = self.encode_leaving(&names, &leaving, at_ns, &mut payload)?;
            let appended = self.log_frame(records, &payload, &[])?;
            names.touch_directory(parent, at_ns, 0);
            words::count(&self.region, words::CHANGES, 1);
            leave(&mut names, &leaving, at_ns, appended.lsn);
            Ok(self.note_left(&names, &leaving)?)
        })
    }

    /// What happens to the file behind a name that goes.
    fn leaving(&self, names: &mut Names, parent: NodeId, name: &[u8]) -> Result<Leaving, Errno> {
        let node = names.open_child(&*self.home, parent, name)?;
        let place = Place { parent, name: name.into() };
        let path = names.path_in(parent, name)?;
        let links = node.body().attributes.links;
        let others = &names.entry(node.id).ok_or(Errno::STALE)?.places;
        let other = others.iter().find(|other| **other != place);
        let survivor = match other {
            Some(other) => names.path_in(other.parent, &other.name)?,
            None => Vec::new(),
        };
        let lives_on = links <= 1 && node.is_open();
        let orphan = lives_on.then(|| Place {
            parent: ORPHANS,
            name: format!("{}-{}", node.id.0, self.log.marks().tail).into_bytes().into(),
        });
        Ok(Leaving { node, place, path, survivor, links, orphan })
    }

    /// The record by which a name goes: a removal, or a move among the orphans.
    fn encode_leaving(
        &self,
        names: &Names,
        leaving: &Leaving,
        at_ns: i64,
        payload: &mut Vec<u8>,
    ) -> Result<u16, Errno> {
        let Leaving { node, place, path, survivor, links, orphan } = leaving;
        let orphan_path = match orphan {
            Some(orphan) => names.path_in(orphan.parent, &orphan.name)?,
            None => Vec::new(),
        };
        let op = match orphan {
            Some(_) => Op::Rename { to: &orphan_path, replaced: NodeId(0) },
            None => Op::Remove { survivor, last: *links <= 1 },
        };
        let parent = orphan.as_ref().map_or(place.parent, |orphan| orphan.parent);
        Record { node: node.id, parent, path, at_ns, op }.encode(payload);
        Ok(1)
    }

    /// Notes for the next front end that the name has gone. Memory and log agree already, so an
    /// error says no more than that there is no room for the note.
    fn note_left(&self, names: &Names, leaving: &Leaving) -> Result<(), Errno> {
        let Leaving { node, place, orphan, .. } = leaving;
        if !node.is_remembered() {
            return Ok(());
        }
        if let Some(orphan) = orphan {
            self.note(names, &RosterEntry::Bind(node.id, orphan.clone()))?;
        }
        self.note(names, &RosterEntry::Unbind(node.id, place.clone()))
    }

    /// Nobody has the orphan open any more.
    pub(crate) fn remove_orphan(&self, id: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.with_room(|| {
            let mut names = self.names_mut();
            let path = names.path_in(ORPHANS, name)?;
            let at_ns = self.clock.utc_ns();
            let op = Op::Remove { survivor: b"", last: true };
            let mut payload = Vec::new();
            Record { node: id, parent: ORPHANS, path: &path, at_ns, op }.encode(&mut payload);
            self.log_frame(1, &payload, &[])?;
            names.unbind(ORPHANS, name);
            names.forget_places(id);
            Ok(())
        })
    }

    /// Takes an empty directory away.
    pub(crate) fn remove_directory(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        check_name(parent, name)?;
        self.node(parent)?;
        self.with_room(|| {
            let mut names = self.names_mut();
            names.load(&*self.home, parent)?;
            let child = names.child(parent, name).ok_or(Errno::NOENT)?;
            if child.kind != Kind::Directory {
                return Err(Errno::NOTDIR.into());
            }
            let node = names.open_child(&*self.home, parent, name)?;
            self.require_empty(&mut names, node.id)?;
            let path = names.path_in(parent, name)?;
            let at_ns = self.clock.utc_ns();
            let mut payload = Vec::new();
            let op = Op::RemoveDir;
            Record { node: node.id, parent, path: &path, at_ns, op }.encode(&mut payload);
            let appended = self.log_frame(1, &payload, &[])?;
            names.touch_directory(parent, at_ns, -1);
            words::count(&self.region, words::CHANGES, 1);
            self.directory_left(&mut names, &node, parent, name, appended.lsn)?;
            Ok(())
        })
    }

    /// The name of an empty directory has gone.
    fn directory_left(
        &self,
        names: &mut Names,
        node: &Node,
        parent: NodeId,
        name: &[u8],
        at: Lsn,
    ) -> Result<(), Errno> {
        names.unbind(parent, name);
        {
            let mut body = node.body_mut();
            body.attributes.links = 0;
            body.last = at;
        }
        let place = Place { parent, name: name.into() };
        self.note(names, &RosterEntry::Unbind(node.id, place))
    }

    /// `ENOTEMPTY` if the directory holds a name, as memory knows it.
    fn require_empty(&self, names: &mut Names, directory: NodeId) -> Result<(), Errno> {
        names.load(&*self.home, directory)?;
        let entry = names.entry(directory).ok_or(Errno::STALE)?;
        match &entry.children {
            Some(children) if children.is_empty() => Ok(()),
            _ => Err(Errno::NOTEMPTY),
        }
    }

    /// Moves a name, perhaps over another. One frame, so no crash shows both or neither.
    pub(crate) fn rename_node(
        &self,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
        how: RenameHow,
    ) -> Result<(), Errno> {
        check_name(from.0, from.1)?;
        check_name(to.0, to.1)?;
        self.node(from.0)?;
        self.node(to.0)?;
        if how == RenameHow::Exchange {
            // Nothing on the home tells afterwards whether a swap has happened, so it could not be
            // repeated safely after a crash.
            return Err(Errno::INVAL);
        }
        self.with_room(|| {
            let mut names = self.names_mut();
            names.load(&*self.home, from.0)?;
            names.load(&*self.home, to.0)?;
            self.rename_once(&mut names, from, to, how)
        })
    }

    fn rename_once(
        &self,
        names: &mut Names,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
        how: RenameHow,
    ) -> Result<(), Stop> {
        let kind = names.child(from.0, from.1).ok_or(Errno::NOENT)?.kind;
        let node = names.open_child(&*self.home, from.0, from.1)?;
        // Opened first, because that tells whether two names are one file.
        if names.child(to.0, to.1).is_some() {
            names.open_child(&*self.home, to.0, to.1)?;
        }
        let target = names.child(to.0, to.1).cloned();
        if target.as_ref().is_some_and(|target| target.node == node.id) {
            return Ok(()); // two names of one file: POSIX wants nothing to happen
        }
        if target.is_some() && how == RenameHow::KeepTarget {
            return Err(Errno::EXIST.into());
        }
        if kind == Kind::Directory && names.is_within(to.0, node.id) {
            return Err(Errno::INVAL.into());
        }
        let (path, to_path) = (names.path_in(from.0, from.1)?, names.path_in(to.0, to.1)?);
        let at_ns = self.clock.utc_ns();
        let replaced = match &target {
            Some(target) => self.replacing(names, kind, target, to)?,
            None => Replaced::Nothing,
        };
        let mut payload = Vec::new();
        let mut records = 1;
        if let Replaced::File(leaving) = &replaced
            && leaving.orphan.is_some()
        {
            records += self.encode_leaving(names, leaving, at_ns, &mut payload)?;
        }
        let replaced_id = target.as_ref().map_or(NodeId(0), |target| target.node);
        let op = Op::Rename { to: &to_path, replaced: replaced_id };
        Record { node: node.id, parent: to.0, path: &path, at_ns, op }.encode(&mut payload);
        let appended = self.log_frame(records, &payload, &[])?;
        let moved = i64::from(kind == Kind::Directory);
        let fewer = i64::from(matches!(replaced, Replaced::Directory(_)));
        names.touch_directory(from.0, at_ns, -moved);
        names.touch_directory(to.0, at_ns, moved - fewer);
        words::count(&self.region, words::CHANGES, 1);
        let noted = self.replaced(names, &replaced, to, at_ns, appended.lsn);
        names.unbind(from.0, from.1);
        names.bind(to.0, to.1, kind, node.id);
        {
            let mut body = node.body_mut();
            body.attributes.changed_ns = at_ns;
            body.last = appended.lsn;
        }
        self.note_renamed(names, &node, from, to)?;
        Ok(noted?)
    }

    /// Whether the target may be replaced, and what becomes of it.
    fn replacing(
        &self,
        names: &mut Names,
        kind: Kind,
        target: &Child,
        to: (NodeId, &[u8]),
    ) -> Result<Replaced, Errno> {
        match (kind == Kind::Directory, target.kind == Kind::Directory) {
            (true, false) => Err(Errno::NOTDIR),
            (false, true) => Err(Errno::ISDIR),
            (false, false) => Ok(Replaced::File(self.leaving(names, to.0, to.1)?)),
            (true, true) => {
                let node = names.open_child(&*self.home, to.0, to.1)?;
                self.require_empty(names, node.id)?;
                Ok(Replaced::Directory(node))
            }
        }
    }

    /// What stood under the new name has gone.
    fn replaced(
        &self,
        names: &mut Names,
        replaced: &Replaced,
        to: (NodeId, &[u8]),
        at_ns: i64,
        at: Lsn,
    ) -> Result<(), Errno> {
        match replaced {
            Replaced::Nothing => Ok(()),
            Replaced::Directory(node) => self.directory_left(names, node, to.0, to.1, at),
            Replaced::File(leaving) => {
                leave(names, leaving, at_ns, at);
                self.note_left(names, leaving)
            }
        }
    }

    fn note_renamed(
        &self,
        names: &Names,
        node: &Node,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
    ) -> Result<(), Errno> {
        if !node.is_remembered() {
            return Ok(());
        }
        let old = Place { parent: from.0, name: from.1.into() };
        let new = Place { parent: to.0, name: to.1.into() };
        self.note(names, &RosterEntry::Bind(node.id, new))?;
        self.note(names, &RosterEntry::Unbind(node.id, old))
    }
}

/// The name has gone.
fn leave(names: &mut Names, leaving: &Leaving, at_ns: i64, at: Lsn) {
    let Leaving { node, place, orphan, .. } = leaving;
    names.unbind(place.parent, &place.name);
    {
        let mut body = node.body_mut();
        body.attributes.links = body.attributes.links.saturating_sub(1);
        body.attributes.changed_ns = at_ns;
        body.last = at;
    }
    if let Some(orphan) = orphan {
        names.bind(orphan.parent, &orphan.name, Kind::File, node.id);
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
