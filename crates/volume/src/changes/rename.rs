//! Moving names, perhaps over others.
//!
//! Promise: a rename is one frame, so no crash shows both names or neither, and one that replaces
//! is there wholly or not at all.
//! Never: touches the home; a name moves there when the cleaner comes to its frame.

use std::sync::Arc;

use holdfast_io::{Files, Kind};
use holdfast_log::Lsn;

use crate::changes::remove::{Leaving, leave};
use crate::error::Stop;
use crate::home::space::Cost;
use crate::names::paths::to_path;
use crate::names::requests::Noted;
use crate::names::roster::Entry as RosterEntry;
use crate::names::{Child, Names, Place};
use crate::node::Node;
use crate::own::{ORPHANS_NAME, make_unless_there};
use crate::record::{AtHome, Op, Record};
use crate::volume::DirectoryVolume;
use crate::words;
use holdfast_io::tree::{Asked, Errno, NodeId, RenameHow};

/// What a rename puts something in the place of.
enum Replaced {
    Nothing,
    File(Leaving),
    /// An empty one.
    Directory(Arc<Node>),
}

impl DirectoryVolume {
    /// Moves a name, perhaps over another. One frame, so no crash shows both or neither.
    pub(crate) fn rename_node(
        &self,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
        how: RenameHow,
    ) -> Result<(), Errno> {
        self.check_name(from.0, from.1)?;
        self.check_name(to.0, to.1)?;
        self.node(from.0)?;
        self.node(to.0)?;
        self.with_room(|| {
            let mut names = self.names_mut();
            names.load(&*self.home, from.0)?;
            names.load(&*self.home, to.0)?;
            match how {
                RenameHow::Exchange(asked) => self.exchange_once(&mut names, from, to, asked),
                how => self.rename_once(&mut names, from, to, how),
            }
        })
    }

    /// Two names change places. One frame, and done once for each request.
    fn exchange_once(
        &self,
        names: &mut Names,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
        asked: Asked,
    ) -> Result<(), Stop> {
        let node = names.open_child(&*self.home, from.0, from.1)?;
        let other = names.open_child(&*self.home, to.0, to.1)?;
        // Done before, each stands where the other was.
        let request = asked.request;
        let before = Noted::Exchange { request, one: other.id, other: node.id };
        if node.id == other.id || asked.again && names.requests.contains(&before) {
            return Ok(());
        }
        if names.is_within(to.0, node.id) || names.is_within(from.0, other.id) {
            return Err(Errno::INVAL.into());
        }
        for id in [node.id, other.id, from.0, to.0] {
            names.loose(id)?;
        }
        names.admit_moved(&*self.home, node.id, from.0, to.0)?;
        names.admit_moved(&*self.home, other.id, to.0, from.0)?;
        self.admit_exchange()?;
        let charge = self.admit(Cost::of_exchange(self.space.unit))?;
        let (path, to_path) = (names.path_in(from.0, from.1)?, names.path_in(to.0, to.1)?);
        let op = Op::Exchange { to: &to_path, other: other.id, from_parent: from.0 };
        self.admit_work(op.unlogged_bytes())?;
        self.note_asked(names, Noted::Exchange { request, one: node.id, other: other.id })?;
        let at_ns = self.clock.utc_ns();
        let mut payload = Vec::new();
        Record { node: node.id, parent: to.0, path: &path, at_home: AtHome::default(), at_ns, op }
            .encode(&mut payload);
        let appended = self.log_move(from.0 == to.0, 1, &payload, op.unlogged_bytes())?;
        charge.placed(appended.lsn);
        self.log.add_to_word(words::CHANGES, 1);
        exchanged(names, (&place(from), &node), (&place(to), &other), at_ns, appended.lsn);
        let noted = self.note_renamed(names, &node, from, to);
        self.note_renamed(names, &other, to, from)?;
        Ok(noted?)
    }

    /// `EINVAL`, as from the home itself, if its file system does not know how.
    fn admit_exchange(&self) -> Result<(), Stop> {
        let can = match self.can_exchange.get() {
            Some(can) => *can,
            None => {
                let node = Cost::of_node(self.space.unit);
                let _room = self.admit(node.plus(node))?;
                let can = can_exchange(&*self.home)?;
                *self.can_exchange.get_or_init(|| can)
            }
        };
        if can { Ok(()) } else { Err(Errno::INVAL.into()) }
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
        for id in [node.id, from.0, to.0] {
            names.loose(id)?;
        }
        names.admit_moved(&*self.home, node.id, from.0, to.0)?;
        let charge = self.admit(Cost::of_name(self.space.unit))?;
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
        Record { node: node.id, parent: to.0, path: &path, at_home: AtHome::default(), at_ns, op }
            .encode(&mut payload);
        let appended = self.log_move(from.0 == to.0, records, &payload, 0)?;
        charge.placed(appended.lsn);
        let moved = i64::from(kind == Kind::Directory);
        let fewer = i64::from(matches!(replaced, Replaced::Directory(_)));
        names.touch_directory(from.0, at_ns, -moved);
        names.touch_directory(to.0, at_ns, moved - fewer);
        self.log.add_to_word(words::CHANGES, 1);
        let noted = self.replaced(names, &replaced, to, at_ns, appended.lsn);
        names.unbind(from.0, from.1);
        names.bind(to.0, to.1, kind, node.id);
        {
            let mut body = node.body_mut();
            body.attributes.changed_ns = at_ns.into();
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

fn place((parent, name): (NodeId, &[u8])) -> Place {
    Place { parent, name: name.into() }
}

/// The record at `at` has let the two change places.
pub(crate) fn exchanged(
    names: &mut Names,
    one: (&Place, &Node),
    other: (&Place, &Node),
    at_ns: i64,
    at: Lsn,
) {
    names.exchange(one, other, at_ns);
    for node in [one.1, other.1] {
        let mut body = node.body_mut();
        body.attributes.changed_ns = at_ns.into();
        body.last = at;
    }
}

/// Lets two directories of the volume's own change places on the home.
fn can_exchange(home: &dyn Files) -> Result<bool, Errno> {
    let own = to_path(ORPHANS_NAME.to_vec());
    let [one, other, _] = crate::own::SCRATCH.map(|name| own.join(name));
    crate::own::make(home)?;
    for directory in [&one, &other] {
        make_unless_there(home, directory)?;
    }
    let exchanged = home.exchange(&one, &other).map_err(Errno::from);
    home.remove_dir(&one)?;
    home.remove_dir(&other)?;
    match exchanged {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        exchanged => exchanged.map(|()| true),
    }
}
