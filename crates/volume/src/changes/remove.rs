//! Removing names, and what becomes of what stood behind them.
//!
//! Promise: each removal is one frame. A file that loses its last name while somebody remembers it,
//! and so may have it open, goes on living among the orphans until nobody can reach it.
//! Never: touches the home; a name goes there when the cleaner comes to its frame.

use std::sync::Arc;

use holdfast_io::Kind;
use holdfast_log::Lsn;

use crate::error::Stop;
use crate::home::space::Cost;
use crate::names::roster::Entry as RosterEntry;
use crate::names::{Names, ORPHANS, Place};
use crate::node::Node;
use crate::record::{AtHome, Op, Record};
use crate::volume::DirectoryVolume;
use crate::words;
use holdfast_io::tree::{Errno, NodeId};

/// A name that is about to go: its node, and what is left of it.
pub(crate) struct Leaving {
    node: Arc<Node>,
    place: Place,
    path: Vec<u8>,
    /// Another path of the node, if one is known.
    survivor: Vec<u8>,
    links: u32,
    /// Where it goes on living, if somebody remembers it and this is its last name.
    pub(crate) orphan: Option<Place>,
}

impl DirectoryVolume {
    /// Takes a name away that is no directory's.
    pub(crate) fn remove_name(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.removing(parent, name, |names, kind| {
            if kind == Kind::Directory {
                return Err(Errno::ISDIR.into());
            }
            let leaving = self.leaving(names, parent, name)?;
            let at_ns = self.clock.utc_ns();
            let mut payload = Vec::new();
            let records = self.encode_leaving(names, &leaving, at_ns, &mut payload)?;
            let appended = self.log_frame(records, &payload)?;
            names.touch_directory(parent, at_ns, 0);
            self.log.add_to_word(words::CHANGES, 1);
            leave(names, &leaving, at_ns, appended.lsn);
            Ok(self.note_left(names, &leaving)?)
        })
    }

    /// Repeats `attempt` on a name of this kind, which must be there, until the log has room.
    fn removing(
        &self,
        parent: NodeId,
        name: &[u8],
        mut attempt: impl FnMut(&mut Names, Kind) -> Result<(), Stop>,
    ) -> Result<(), Errno> {
        self.check_name(parent, name)?;
        self.node(parent)?;
        self.with_room(|| {
            let mut names = self.names_mut();
            names.load(&*self.home, parent)?;
            let kind = names.child(parent, name).ok_or(Errno::NOENT)?.kind;
            self.admit(Cost::NONE)?;
            names.loose(parent)?;
            attempt(&mut names, kind)
        })
    }

    /// What happens to the file behind a name that goes.
    pub(crate) fn leaving(
        &self,
        names: &mut Names,
        parent: NodeId,
        name: &[u8],
    ) -> Result<Leaving, Errno> {
        let node = names.open_child(&*self.home, parent, name)?;
        node.body().require_loose()?;
        let place = Place { parent, name: name.into() };
        let path = names.path_in(parent, name)?;
        let (links, kind) = {
            let body = node.body();
            (body.attributes.links, body.attributes.kind)
        };
        let others = &names.entry(node.id).ok_or(Errno::STALE)?.places;
        let other = others.iter().find(|other| **other != place);
        let survivor = match other {
            Some(other) => names.path_in(other.parent, &other.name)?,
            None => Vec::new(),
        };
        // Another name may be there that nobody has met yet, and cannot be gone by.
        let is_last = links <= 1 || other.is_none();
        let lives_on = is_last && kind == Kind::File && node.is_remembered();
        let orphan = lives_on.then(|| orphan_place(node.id, self.log.marks().tail));
        Ok(Leaving { node, place, path, survivor, links, orphan })
    }

    /// The record by which a name goes: a removal, or a move among the orphans.
    pub(crate) fn encode_leaving(
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
        Record { node: node.id, parent, path, at_home: AtHome::default(), at_ns, op }
            .encode(payload);
        Ok(1)
    }

    /// Notes for the next front end that the name has gone. Memory and log agree already, so an
    /// error says no more than that there is no room for the note.
    pub(crate) fn note_left(&self, names: &Names, leaving: &Leaving) -> Result<(), Errno> {
        let Leaving { node, place, orphan, .. } = leaving;
        if !node.is_remembered() {
            return Ok(());
        }
        if let Some(orphan) = orphan {
            self.note(names, &RosterEntry::Bind(node.id, orphan.clone()))?;
        }
        self.note(names, &RosterEntry::Unbind(node.id, place.clone()))
    }

    /// Takes an empty directory away.
    pub(crate) fn remove_directory(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.removing(parent, name, |names, kind| {
            if kind != Kind::Directory {
                return Err(Errno::NOTDIR.into());
            }
            let node = names.open_child(&*self.home, parent, name)?;
            node.body().require_loose()?;
            self.require_empty(names, node.id)?;
            let path = names.path_in(parent, name)?;
            let at_ns = self.clock.utc_ns();
            let mut payload = Vec::new();
            let op = Op::RemoveDir;
            Record { node: node.id, parent, path: &path, at_home: AtHome::default(), at_ns, op }
                .encode(&mut payload);
            let appended = self.log_frame(1, &payload)?;
            names.touch_directory(parent, at_ns, -1);
            self.log.add_to_word(words::CHANGES, 1);
            Ok(self.directory_left(names, &node, parent, name, appended.lsn)?)
        })
    }

    /// The name of an empty directory has gone.
    pub(crate) fn directory_left(
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
    pub(crate) fn require_empty(&self, names: &mut Names, directory: NodeId) -> Result<(), Errno> {
        names.load(&*self.home, directory)?;
        let entry = names.entry(directory).ok_or(Errno::STALE)?;
        match &entry.children {
            Some(children) if children.is_empty() => Ok(()),
            _ => Err(Errno::NOTEMPTY),
        }
    }
}

/// Where a file without a name lives; `tail` tells this time from any other.
pub(crate) fn orphan_place(node: NodeId, tail: Lsn) -> Place {
    let name = format!("{}-{tail}", node.0).into_bytes().into();
    Place { parent: ORPHANS, name }
}

/// The name has gone.
pub(crate) fn leave(names: &mut Names, leaving: &Leaving, at_ns: i64, at: Lsn) {
    let Leaving { node, place, orphan, .. } = leaving;
    names.unbind(place.parent, &place.name);
    {
        let mut body = node.body_mut();
        body.attributes.links = body.attributes.links.saturating_sub(1);
        body.attributes.changed_ns = at_ns.into();
        body.last = at;
    }
    if let Some(orphan) = orphan {
        names.bind(orphan.parent, &orphan.name, Kind::File, node.id);
    }
}
