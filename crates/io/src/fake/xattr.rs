//! Extended attributes of a fake machine, and what a mode and they do to each other.
//!
//! Promise: the namespaces, limits and access control lists of ext4.
//! Never: decides what is durable; an attribute is so with the mode.

use std::sync::Arc;

use rustix::io::Errno;

use super::machine::Machine;
use super::names::Attributes;
use super::turn::{Outcome, Turn};
use crate::acl::{ACCESS, Acl, DEFAULT};
use crate::{Kind, XATTR_NAME_BYTES_MAX, XATTR_VALUE_BYTES_MAX};

/// What a program may do with less than all rights; any change of the contents takes it away.
const CAPABILITY: &[u8] = b"security.capability";

/// Whether an inode of this kind may have an attribute of this name.
fn check_name(kind: Kind, name: &[u8]) -> Outcome<()> {
    if name.is_empty() || name.len() > XATTR_NAME_BYTES_MAX {
        return Err(Errno::RANGE);
    }
    if name == ACCESS || name == DEFAULT {
        return if kind == Kind::Symlink { Err(Errno::OPNOTSUPP) } else { Ok(()) };
    }
    let spaces: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
    let space = spaces.into_iter().find(|space| name.starts_with(space));
    match space.ok_or(Errno::OPNOTSUPP)? {
        b"user." if !matches!(kind, Kind::File | Kind::Directory) => Err(Errno::PERM),
        space if space.len() == name.len() => Err(Errno::INVAL),
        _ => Ok(()),
    }
}

/// The attributes with a list of access, or without.
fn with_list(
    mut attributes: Attributes,
    name: &[u8],
    acl: &Acl,
    bytes_max: usize,
) -> Outcome<Attributes> {
    let xattrs = Arc::make_mut(&mut attributes.xattrs);
    if name == ACCESS {
        attributes.mode = attributes.mode & !0o777 | acl.mode();
    }
    if name == ACCESS && acl.is_mode() {
        xattrs.remove(name);
    } else {
        xattrs.put(name, acl.encode(), bytes_max)?;
    }
    Ok(attributes)
}

impl Attributes {
    fn list(&self, name: &[u8]) -> Option<Acl> {
        self.xattrs.values.get(name).and_then(|bytes| Acl::decode(bytes))
    }

    /// The mode was changed, and with it the list that tells the same.
    pub(super) fn mode_changed(mut self) -> Attributes {
        if let Some(mut acl) = self.list(ACCESS) {
            acl.set_mode(self.mode);
            let values = &mut Arc::make_mut(&mut self.xattrs).values;
            values.insert(ACCESS.to_vec(), acl.encode());
        }
        self
    }

    /// The contents or the owner changed.
    pub(super) fn without_capability(mut self) -> Attributes {
        if self.xattrs.values.contains_key(CAPABILITY) {
            Arc::make_mut(&mut self.xattrs).remove(CAPABILITY);
        }
        self
    }

    /// What is made in a directory with `self`, and then given its mode once more.
    fn handed_down(&self, kind: Kind, made: Attributes, bytes_max: usize) -> Outcome<Attributes> {
        let Some(mut acl) = self.list(DEFAULT).filter(|_| kind != Kind::Symlink) else {
            return Ok(made);
        };
        let default = acl.encode();
        acl.set_mode(made.mode);
        let mut made = with_list(made, ACCESS, &acl, bytes_max)?;
        if kind == Kind::Directory {
            Arc::make_mut(&mut made.xattrs).put(DEFAULT, default, bytes_max)?;
        }
        Ok(made)
    }
}

impl Machine {
    /// What a new inode in `dir` gets of it; refused if that is more than an inode can have.
    pub(super) fn inherited(&self, dir: u64, kind: Kind, made: Attributes) -> Outcome<Attributes> {
        self.inode(dir).attributes.handed_down(kind, made, self.xattr_bytes_max)
    }

    pub(super) fn xattr(&self, number: u64, name: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let inode = self.inode(number);
        match check_name(inode.kind, name) {
            Err(Errno::PERM) => Ok(None),
            Err(error) => Err(error),
            Ok(()) => Ok(inode.attributes.xattrs.values.get(name).cloned()),
        }
    }

    pub(super) fn xattr_names(&self, number: u64) -> Vec<Vec<u8>> {
        self.inode(number).attributes.xattrs.values.keys().cloned().collect()
    }

    pub(super) fn set_xattr(
        &mut self,
        operation: u64,
        number: u64,
        name: &[u8],
        value: &[u8],
    ) -> Outcome<()> {
        let inode = self.inode(number);
        if value.len() > XATTR_VALUE_BYTES_MAX {
            return Err(Errno::TOOBIG);
        }
        check_name(inode.kind, name)?;
        self.check_xattr_room(name, value)?;
        let mut attributes = inode.attributes.clone();
        if name == ACCESS || name == DEFAULT {
            if name == DEFAULT && inode.kind != Kind::Directory {
                return Err(Errno::ACCESS);
            }
            let acl = Acl::decode(value).ok_or(Errno::INVAL)?;
            attributes = with_list(attributes, name, &acl, self.xattr_bytes_max)?;
        } else {
            let xattrs = Arc::make_mut(&mut attributes.xattrs);
            xattrs.put(name, value.to_vec(), self.xattr_bytes_max)?;
        }
        self.change_attributes(operation, number, attributes);
        Ok(())
    }

    pub(super) fn remove_xattr(&mut self, operation: u64, number: u64, name: &[u8]) -> Outcome<()> {
        check_name(self.inode(number).kind, name)?;
        let mut attributes = self.inode(number).attributes.clone();
        if Arc::make_mut(&mut attributes.xattrs).remove(name) {
            self.change_attributes(operation, number, attributes);
        }
        Ok(())
    }

    /// A change of the contents takes the right away that they were trusted with.
    pub(super) fn contents_changed(&mut self, turn: Turn, number: u64) {
        if self.inode(number).attributes.xattrs.values.contains_key(CAPABILITY) {
            let attributes = self.inode(number).attributes.clone().without_capability();
            self.change_attributes(turn.number, number, attributes);
        }
    }
}
