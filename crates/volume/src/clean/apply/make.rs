//! Making a node on the home.
//!
//! Promise: what gets the owner and the mode of a new node is what was made for it, by this step or
//! by an earlier time of it.
//! Never: takes a file of somebody else's for one that it made itself.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use holdfast_io::acl::{ACCESS, DEFAULT};
use holdfast_io::{Change, Held, Kind, Metadata};

use super::{Applier, unless};
use crate::clean::error::{Act, CleanError};
use crate::clean::plan::{Make, Step, Window, is_orphan};
use crate::names::Names;
use holdfast_io::tree::other_inode;
use holdfast_io::tree::{Errno, NodeId};

impl Applier<'_> {
    /// Makes a node in a directory. One that is there already was made by this very step, before a
    /// crash; owner and mode may still be missing then, so they are set either way.
    pub(super) fn make(
        &mut self,
        names: &mut Names,
        (node, parent): (NodeId, NodeId),
        path: &[u8],
        make: &Make,
        window: &Window,
    ) -> Result<(), CleanError> {
        if is_orphan(path) {
            self.make_orphans()?;
        }
        let name = path;
        let path = self.changed(name);
        let fail = |act, error| CleanError::home(act, &path, error);
        let lists =
            self.hands_down(names, parent, &path).map_err(|error| fail(Act::Make, error))?;
        let owns = |found| window.may_own(node, name, found);
        let made = match self.make_new(names, parent, &path, make) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.made_before(names, node, &path, make, &owns)
            }
            made => made,
        };
        let held = made.map_err(|error| fail(Act::Make, error))?;
        if make.kind != Kind::Symlink && (window.repeats || lists) {
            disinherit(&*held, make.kind).map_err(|error| fail(Act::Make, error))?;
        }
        // A change of owner clears the set-id bits, so the mode comes last.
        let mode = (make.kind != Kind::Symlink).then_some(make.mode);
        let change = Change { uid: Some(make.uid), gid: Some(make.gid), mode, ..Change::default() };
        held.change(&change).map_err(|error| fail(Act::Change, error))?;
        let found = held.metadata().map_err(|error| fail(Act::Make, error))?;
        names.learn_made(node, &found);
        Ok(())
    }

    fn make_new(
        &mut self,
        names: &Names,
        parent: NodeId,
        path: &Path,
        make: &Make,
    ) -> io::Result<Box<dyn Held>> {
        match make.kind {
            Kind::Directory => self.make_dir(names, parent, path, make.mode),
            Kind::Symlink => {
                self.home.make_symlink(path, &make.target)?;
                let held = self.home.hold(path)?;
                if is_link_to(&*held, &make.target)? { Ok(held) } else { Err(other_inode()) }
            }
            kind => self.home.make(path, kind, make.mode, make.rdev),
        }
    }

    /// What an earlier time of this step made. If no inode is known, it looks as it must: it has
    /// an owner that it gets, or nothing was done with it yet.
    fn made_before(
        &self,
        names: &Names,
        node: NodeId,
        path: &Path,
        make: &Make,
        owns: &dyn Fn(u32) -> bool,
    ) -> io::Result<Box<dyn Held>> {
        if names.knows_inode(node) {
            return self.hold(names, node, path);
        }
        let held = self.home.hold(path)?;
        if is_made(&*held, make, owns)? { Ok(held) } else { Err(other_inode()) }
    }

    /// Takes a node's name away. One that is missing was removed by this very step. Where the
    /// window makes the node, or makes another under its name, that may be there from an earlier
    /// time.
    pub(super) fn remove(
        &mut self,
        names: &Names,
        node: NodeId,
        path: &[u8],
        window: &Window,
        directory: bool,
    ) -> Result<(), CleanError> {
        let name = self.changed(path);
        if names.knows_inode(node) {
            let known = names.entry(node).map(|entry| entry.kind);
            self.leaving.entry(node).or_insert((names.at_home(node).inode, known));
        }
        let mut gone = None;
        let removed = self.home.hold(&name).and_then(|held| {
            let held: &dyn Held = &**gone.insert(held);
            // This process has done it before, and has gone on: whoever has the other one open goes
            // on reading that inode.
            if names.is_taken_home(self.home, node, &name, &held.metadata()?) {
                return Ok(());
            }
            let is_new = window.contents.get(&node).is_some_and(|contents| contents.made);
            let is_known = names.knows_inode(node) || !is_new;
            let found = held.metadata()?;
            let is_it = is_known && names.may_be(self.home, node, &found);
            let may_go = is_it || self.is_leaving(node, &found);
            match may_go || self.is_made_in(names, window, (node, path), held)? {
                true if directory => match self.home.remove_dir(&name) {
                    // It is what came there since, unless it is known to be what went.
                    Err(error)
                        if error.kind() == io::ErrorKind::DirectoryNotEmpty
                            && window.comes_again(path)
                            && !(is_it && names.knows_inode(node)) =>
                    {
                        Ok(())
                    }
                    removed => removed,
                },
                true => self.home.remove_file(&name),
                false => Err(other_inode()),
            }
        });
        self.gone.extend(gone);
        unless(removed, io::ErrorKind::NotFound)
            .map_err(|error| CleanError::home(Act::Remove, &name, error))
    }

    /// Takes away what an earlier time made of a node whose making was put aside. Anything else
    /// that stands there stays.
    pub(super) fn unmake(
        &mut self,
        names: &Names,
        node: NodeId,
        path: &[u8],
        make: &Make,
        window: &Window,
    ) -> Result<(), CleanError> {
        let name = self.changed(path);
        let owns = |uid| window.may_own(node, path, uid);
        let mut gone = None;
        let removed = self.home.hold(&name).and_then(|held| {
            let held: &dyn Held = &**gone.insert(held);
            let found = held.metadata()?;
            let is_it = match names.knows_inode(node) {
                true => names.may_be(self.home, node, &found),
                false => is_made(held, make, &owns)?,
            };
            match is_it && !names.is_another(node, &found) {
                false => Ok(()),
                true if make.kind == Kind::Directory => self.home.remove_dir(&name),
                true => self.home.remove_file(&name),
            }
        });
        self.gone.extend(gone);
        let kept = unless(removed, io::ErrorKind::DirectoryNotEmpty);
        unless(kept, io::ErrorKind::NotFound)
            .map_err(|error| CleanError::home(Act::Remove, &name, error))
    }

    /// Whether it is what the node was known by before this window took another of its names away,
    /// which may have been its last: a repetition looks under all that it has passed.
    fn is_leaving(&self, node: NodeId, found: &Metadata) -> bool {
        self.leaving.get(&node).is_some_and(|known| *known == (found.inode, Some(found.kind)))
    }

    /// Whether it is like what the window makes of the node, or under the name once that is free,
    /// or like what gets the name then.
    pub(super) fn is_made_in(
        &self,
        names: &Names,
        window: &Window,
        (gone, name): (NodeId, &[u8]),
        held: &dyn Held,
    ) -> io::Result<bool> {
        let linked = window.steps.iter().filter_map(|step| match step {
            Step::Link { node, to, .. } if to == name => Some(*node),
            _ => None,
        });
        let linked: BTreeSet<NodeId> = linked.collect();
        let found = held.metadata()?;
        if linked.iter().any(|node| *node != gone && names.may_be(self.home, *node, &found)) {
            return Ok(true);
        }
        let makes = window.steps.iter().filter_map(|step| match step {
            Step::Make { node, path, make, .. } | Step::Unmake { node, path, make } => {
                Some((*node, path, make))
            }
            _ => None,
        });
        for (node, path, make) in makes {
            let is_its = path == name || node == gone || linked.contains(&node);
            let owns = |uid| window.may_own(node, name, uid) || window.may_own(node, path, uid);
            if is_its && is_made(held, make, &owns)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes a directory. A list that the home still hands down, and no longer will when this
    /// window is applied, may be longer than what a new directory can have: then it goes first.
    fn make_dir(
        &mut self,
        names: &Names,
        parent: NodeId,
        path: &Path,
        mode: u32,
    ) -> io::Result<Box<dyn Held>> {
        match self.home.make(path, Kind::Directory, mode, 0) {
            Err(error)
                if error.kind() == io::ErrorKind::StorageFull
                    && self.relisted.contains(&parent) =>
            {
                self.hold_above(names, parent, path)?.remove_xattr(DEFAULT)?;
                self.hands_down.insert(parent, false);
                self.home.make(path, Kind::Directory, mode, 0)
            }
            made => made,
        }
    }

    /// Whether the home gives what is made here lists. Names come before attributes in a window, so
    /// that stays as it is while names are made.
    fn hands_down(&mut self, names: &Names, parent: NodeId, path: &Path) -> io::Result<bool> {
        if let Some(known) = self.hands_down.get(&parent) {
            return Ok(*known);
        }
        let list = match self.hold_above(names, parent, path)?.xattr(DEFAULT) {
            Err(error) if is_without_lists(&error) => None,
            list => list?,
        };
        self.hands_down.insert(parent, list.is_some());
        Ok(list.is_some())
    }

    fn hold_above(&self, names: &Names, parent: NodeId, path: &Path) -> io::Result<Box<dyn Held>> {
        self.hold(names, parent, path.parent().unwrap_or(Path::new("")))
    }
}

/// Whether what is found may be what an earlier time made. Nobody else has files in the home that
/// are like it: what programs make there comes home by such steps.
fn is_made(held: &dyn Held, make: &Make, owns: &dyn Fn(u32) -> bool) -> io::Result<bool> {
    let found = held.metadata()?;
    if found.kind != make.kind {
        return Ok(false);
    }
    let is_owned = found.uid == make.uid || owns(found.uid);
    Ok(match make.kind {
        Kind::Symlink => is_link_to(held, &make.target)?,
        Kind::Directory => is_owned || held.read_dir()?.is_empty(),
        _ => is_owned || (found.links == 1 && found.size_bytes == 0),
    })
}

fn is_link_to(held: &dyn Held, target: &[u8]) -> io::Result<bool> {
    Ok(held.metadata()?.kind == Kind::Symlink && held.read_link()? == target)
}

/// Takes away what the home handed down: which lists a node has is the log's to say.
fn disinherit(held: &dyn Held, kind: Kind) -> io::Result<()> {
    let lists = if kind == Kind::Directory { &[ACCESS, DEFAULT][..] } else { &[ACCESS] };
    for list in lists {
        match held.remove_xattr(list) {
            Err(error) if is_without_lists(&error) => {}
            removed => removed?,
        }
    }
    Ok(())
}

/// A home whose file system has no lists hands none down.
fn is_without_lists(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOTSUP.0)
}
