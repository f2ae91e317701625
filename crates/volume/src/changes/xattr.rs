//! Extended attributes and access control lists: telling, setting and removing them.
//!
//! Promise: each change is one frame, and is refused before that if the home would refuse it. A
//! mode and the list that goes with it change together.
//! Never: touches what a program can see on the home.

mod gate;
mod overlay;

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_io::acl::{ACCESS, Acl, DEFAULT};
use holdfast_io::{Change, Held, Kind, XATTR_VALUE_BYTES_MAX};

pub(crate) use gate::{Gate, clear, place};
pub(crate) use overlay::{CAPABILITY, Found, Value, Xattrs, is_acl, is_shadow};
use overlay::{LISTS, Named, USER, space_of};

use crate::error::Stop;
use crate::frame::{Frame, Spot};
use crate::home::space::{Charge, Cost};
use crate::names::Names;
use crate::names::requests::Noted;
use crate::node::Body;
use crate::record::Op;
use crate::volume::DirectoryVolume;
use crate::words;
use holdfast_io::tree::{Asked, Errno, NodeId, ROOT, SetXattr};

/// What Holdfast marks a home with, on its root.
const OWN: [&[u8]; 2] = [b"user.holdfast.", b"trusted.holdfast."];

const SET_GROUP_ID: u32 = 0o2000;

/// What no program can see or change.
fn is_hidden(node: NodeId, name: &[u8]) -> bool {
    is_shadow(name) || node == ROOT && OWN.iter().any(|own| name.starts_with(own))
}

/// Whether a node of this kind may be given such an attribute.
fn check(node: NodeId, kind: Kind, name: &[u8]) -> Result<&'static [u8], Errno> {
    match space_of(name)? {
        _ if is_hidden(node, name) => Err(Errno::PERM),
        USER if !matches!(kind, Kind::File | Kind::Directory) => Err(Errno::PERM),
        LISTS if kind == Kind::Symlink => Err(Errno::NOTSUP),
        LISTS if name == DEFAULT && kind != Kind::Directory => Err(Errno::ACCESS),
        space => Ok(space),
    }
}

impl DirectoryVolume {
    /// Learns which attributes the home has for a node, once.
    pub(crate) fn know_xattrs(
        &self,
        names: &Names,
        id: NodeId,
        body: &mut Body,
    ) -> Result<(), Errno> {
        if body.xattrs.is_known() {
            return Ok(());
        }
        let mut known = BTreeMap::new();
        if let Some(held) = names.hold(&*self.home, id)? {
            let listed = match held.xattr_names().map_err(Errno::from) {
                Err(Errno::NOTSUP) => Vec::new(),
                listed => listed?,
            };
            for name in listed.into_iter().filter(|name| !is_hidden(id, name)) {
                let list = if is_acl(&name) { held.xattr(&name)? } else { None };
                known.insert(name.into(), list.map(Value::from));
            }
        }
        body.xattrs.told(known);
        Ok(())
    }

    /// What the node has, by name; `each` sees it with its attributes known.
    fn with_xattrs<T>(
        &self,
        id: NodeId,
        each: impl FnOnce(&Names, &Body) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let names = self.names_with(id)?;
        let node = &names.entry(id).ok_or(Errno::STALE)?.node;
        if !node.body().xattrs.is_known() {
            self.know_xattrs(&names, id, &mut node.body_mut())?;
        }
        each(&names, &node.body())
    }

    /// The value of an attribute, wherever it is.
    fn value_of(
        &self,
        names: &Names,
        id: NodeId,
        body: &Body,
        name: &[u8],
    ) -> Result<Option<Value>, Errno> {
        match body.xattrs.find(name) {
            Found::Here(value) => Ok(Some(value)),
            Found::Nowhere => Ok(None),
            Found::AtHome => {
                let held = names.hold(&*self.home, id)?.ok_or(Errno::STALE)?;
                value_at_home(&*held, name)
            }
        }
    }

    pub(crate) fn xattr_of(&self, id: NodeId, name: &[u8]) -> Result<Vec<u8>, Errno> {
        space_of(name)?;
        let value = self.with_xattrs(id, |names, body| self.value_of(names, id, body, name))?;
        value.map(|value| value.to_vec()).ok_or(Errno::NODATA)
    }

    pub(crate) fn xattr_names_of(&self, id: NodeId) -> Result<Vec<Box<[u8]>>, Errno> {
        self.with_xattrs(id, |_, body| Ok(body.xattrs.names()))
    }

    /// Gives a node an attribute.
    pub(crate) fn set_xattr_of(
        &self,
        id: NodeId,
        name: &[u8],
        value: &[u8],
        how: &SetXattr,
    ) -> Result<(), Errno> {
        if value.len() > XATTR_VALUE_BYTES_MAX {
            return Err(Errno::TOOBIG);
        }
        self.change_named(id, |names, spot, body| {
            let space = check(id, body.attributes.kind, name)?;
            match (body.xattrs.has(name), how.create) {
                (true, Some(asked)) if was_done(names, id, asked) => return Ok(()),
                (true, Some(_)) => return Err(Errno::EXIST.into()),
                (false, _) if how.replace => return Err(Errno::NODATA.into()),
                (false, Some(asked)) => self.note_asked(names, noted(id, asked))?,
                _ => {}
            }
            if space == LISTS {
                let acl = Acl::decode(value).ok_or(Errno::INVAL)?;
                return self.set_acl(names, spot, body, name, &acl, how);
            }
            let whole = self.admit_xattr(names, id, body, space, (name, value))?;
            self.log_xattrs(spot, body, &Change::default(), &given(&whole))
        })
    }

    /// A list of access changes the mode, and is none if the mode says as much.
    fn set_acl(
        &self,
        names: &Names,
        spot: Spot<'_>,
        body: &mut Body,
        name: &[u8],
        acl: &Acl,
        how: &SetXattr,
    ) -> Result<(), Stop> {
        let value: Value = acl.encode().into();
        let whole = self.admit_xattr(names, spot.node, body, LISTS, (name, &value))?;
        if name == DEFAULT && spot.node == ROOT {
            // The volume's own directory, which comes and goes, is made below it.
            self.admit_lists(&[(ACCESS, value.clone()), (DEFAULT, value.clone())])?;
        }
        if name == DEFAULT {
            return self.log_xattrs(spot, body, &Change::default(), &given(&whole));
        }
        let lost = if how.clear_group_id { SET_GROUP_ID } else { 0 };
        let mode = body.attributes.mode & !(0o777 | lost) | acl.mode();
        let change = Change { mode: Some(mode), ..Change::default() };
        match (acl.is_mode(), body.xattrs.has(name)) {
            (false, _) => self.log_xattrs(spot, body, &change, &given(&whole)),
            (true, true) => self.log_xattrs(spot, body, &change, &[(name, None)]),
            (true, false) => self.log_xattrs(spot, body, &change, &[]),
        }
    }

    /// Takes an attribute away. A list that is not there counts as taken, as on any file system.
    pub(crate) fn remove_xattr_of(
        &self,
        id: NodeId,
        name: &[u8],
        asked: Asked,
    ) -> Result<(), Errno> {
        self.change_named(id, |names, spot, body| {
            let space = space_of(name)?;
            if is_hidden(id, name) {
                return Err(Errno::PERM.into());
            }
            match body.xattrs.has(name) {
                true => {
                    self.note_asked(names, noted(id, asked))?;
                    self.log_xattrs(spot, body, &Change::default(), &[(name, None)])
                }
                false if space == LISTS || was_done(names, id, asked) => Ok(()),
                false => Err(Errno::NODATA.into()),
            }
        })
    }

    /// Asks the home whether it takes one attribute more besides those that the node has. Returns
    /// what is to be logged: where what fits depends on all of them, all of them, so that whoever
    /// brings them home can begin with none of them and end with all, whenever he dies.
    fn admit_xattr(
        &self,
        names: &Names,
        id: NodeId,
        body: &Body,
        space: &'static [u8],
        added: (&[u8], &[u8]),
    ) -> Result<Vec<Named>, Stop> {
        let (name, value) = added;
        let mut wanted = vec![(name.into(), value.into())];
        // Without room for it nobody is told that the home does not take it.
        let room = self.admit(self.space.cost_of_xattr(&*self.home, name, value))?;
        self.add_others(names, id, body, &mut wanted)?;
        let probe = || match space {
            LISTS => (ACCESS.into(), vec![value.into()]),
            _ => (probe_name(space), gate::sure_values()),
        };
        let room_to_try = |tried: &[Named]| self.room_to_try(tried);
        if !self.xattrs.admit(&*self.home, room_to_try, space, probe, &wanted)? {
            wanted.truncate(1);
        }
        drop(room);
        Ok(wanted)
    }

    /// Room for a node of the volume's own that has all of these, for as long as it is kept: what
    /// the home then says against it, it says of the attributes.
    fn room_to_try(&self, tried: &[Named]) -> Result<Charge<'_>, Stop> {
        let costs =
            tried.iter().map(|(name, value)| self.space.cost_of_xattr(&*self.home, name, value));
        self.admit(costs.fold(Cost::of_node(self.space.unit), Cost::plus))
    }

    /// Adds what the node has besides the one that is there. The home's inode is held once for all.
    fn add_others(
        &self,
        names: &Names,
        id: NodeId,
        body: &Body,
        wanted: &mut Vec<Named>,
    ) -> Result<(), Errno> {
        let mut others = body.xattrs.names();
        others.retain(|other| *other != wanted[0].0 && space_of(other).is_ok());
        let mut at_home: Option<Box<dyn Held>> = None;
        for other in others {
            let value = match (body.xattrs.find(&other), &mut at_home) {
                (Found::Here(value), _) => Some(value),
                (Found::Nowhere, _) => None,
                (Found::AtHome, Some(held)) => value_at_home(&**held, &other)?,
                (Found::AtHome, none) => {
                    let held = names.hold(&*self.home, id)?.ok_or(Errno::STALE)?;
                    value_at_home(&**none.insert(held), &other)?
                }
            };
            wanted.extend(value.map(|value| (other, value)));
        }
        Ok(())
    }

    /// Asks the home whether it takes these lists of a node that is to be made, all on one inode.
    pub(crate) fn admit_lists(&self, lists: &[(&'static [u8], Value)]) -> Result<(), Stop> {
        let Some((_, value)) = lists.first() else { return Ok(()) };
        let wanted: Vec<_> =
            lists.iter().map(|(name, list)| ((*name).into(), list.clone())).collect();
        let probe = || (ACCESS.into(), vec![value.clone()]);
        let room_to_try = |tried: &[Named]| self.room_to_try(tried);
        self.xattrs.admit(&*self.home, room_to_try, LISTS, probe, &wanted)?;
        Ok(())
    }

    /// Logs a change of the mode, if any, and of attributes, as one frame.
    fn log_xattrs(
        &self,
        spot: Spot<'_>,
        body: &mut Body,
        change: &Change,
        xattrs: &[(&[u8], Option<Value>)],
    ) -> Result<(), Stop> {
        let values = xattrs.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let given: Vec<_> = values.collect();
        let charge = self.admit(self.space.cost_of_xattrs(&*self.home, &given))?;
        let at_ns = self.clock.utc_ns();
        let mut frame = Frame::new(spot, at_ns);
        if *change != Change::default() {
            frame.add(Op::Change { change: *change });
        }
        for (name, value) in xattrs {
            frame.add(op_of(name, value.as_ref()));
        }
        let appended = self.log_frame(frame.records, &frame.payload)?;
        charge.placed(appended.lsn);
        for (name, value) in xattrs {
            body.xattrs.set(name, value.clone(), appended.lsn);
        }
        body.change(change, at_ns, appended.lsn);
        self.log.add_to_word(words::CHANGES, 1);
        Ok(())
    }
}

/// What is noted of a request before it gives a node an attribute, or takes one away.
fn noted(node: NodeId, asked: Asked) -> Noted {
    Noted::Attribute { request: asked.request, node }
}

/// Whether what is not as the request needs it is so because the request was carried out before.
fn was_done(names: &Names, node: NodeId, asked: Asked) -> bool {
    asked.again && names.requests.contains(&noted(node, asked))
}

fn value_at_home(held: &dyn Held, name: &[u8]) -> Result<Option<Value>, Errno> {
    Ok(held.xattr(name)?.map(Value::from))
}

/// Each has its value.
fn given(whole: &[Named]) -> Vec<(&[u8], Option<Value>)> {
    whole.iter().map(|(name, value)| (&**name, Some(value.clone()))).collect()
}

/// The operation that gives an attribute a value, or takes it away.
pub(crate) fn op_of<'a>(name: &'a [u8], value: Option<&'a Value>) -> Op<'a> {
    match value {
        Some(value) => Op::SetXattr { name, value },
        None => Op::RemoveXattr { name },
    }
}

fn probe_name(space: &[u8]) -> Box<[u8]> {
    [space, b"holdfast"].concat().into()
}

/// What a new node below a directory with this list gets: its mode, and its lists.
pub(crate) fn handed_down(
    default: Option<&Acl>,
    kind: Kind,
    mode: u32,
    umask: u32,
) -> (u32, Vec<(&'static [u8], Value)>) {
    let Some(default) = default.filter(|_| kind != Kind::Symlink) else {
        return (mode & !umask, Vec::new());
    };
    let (access, mode) = default.handed_down(mode);
    let mut lists: Vec<(&'static [u8], Value)> = Vec::new();
    if !access.is_mode() {
        lists.push((ACCESS, Arc::from(access.encode())));
    }
    if kind == Kind::Directory {
        lists.push((DEFAULT, Arc::from(default.encode())));
    }
    (mode, lists)
}
