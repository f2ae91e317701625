//! The state of a fake machine: inodes, names, and what is going to go wrong.
//!
//! Promise: names behave as on Linux: the same calls succeed, the others fail with the same error.
//! Never: decides by itself what is durable; that is asked of [`Names`] and each file's history.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use super::contents::BLOCK_BYTES;
use super::faults::Faults;
use super::inode::{Inode, changed};
use super::labels::XATTR_BYTES_MAX;
use super::names::{Attributes, Edit, NameChange, Names};
use super::turn::{Outcome, Turn};
use super::{Effect, FakeLimits, Operation, Random, Sectors};
use crate::path::{check, check_both};
use crate::{Change, Kind, Metadata};

/// The inode of the root.
pub(super) const ROOT: u64 = 2;
/// The first moment, in November 2023.
const START_NS: i64 = 1_700_000_000_000_000_000;

/// Everything behind one lock.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) inodes: BTreeMap<u64, Inode>,
    pub(super) names: Names,
    pub(super) faults: Faults,
    pub(super) random: Random,
    pub(super) sectors: Sectors,
    pub(super) capacity_bytes: Option<u64>,
    pub(super) read_only: bool,
    /// What all extended attributes of an inode may take.
    pub(super) xattr_bytes_max: usize,
    pub(super) limits: FakeLimits,
    pub(super) cut_at: Option<u64>,
    pub(super) powerless: bool,
    /// Where the paths of the call now served begin.
    pub(super) root: u64,
    operations: u64,
    /// Calls of each kind since the machine was started, whether they succeeded or not.
    pub(super) calls: HashMap<Operation, u64>,
    pub(super) now_ns: i64,
}

impl Machine {
    pub(super) fn new(seed: u64) -> Machine {
        Machine {
            inodes: BTreeMap::from([(
                ROOT,
                Inode::new(Kind::Directory, 0o755, START_NS, BLOCK_BYTES),
            )]),
            names: Names::default(),
            faults: Faults::default(),
            random: Random::new(seed),
            sectors: Sectors::default(),
            capacity_bytes: None,
            read_only: false,
            xattr_bytes_max: XATTR_BYTES_MAX,
            limits: FakeLimits::default(),
            cut_at: None,
            powerless: false,
            root: ROOT,
            operations: 0,
            calls: HashMap::new(),
            now_ns: START_NS,
        }
    }

    /// The same machine with these inodes, started again.
    pub(super) fn restarted(&self, inodes: BTreeMap<u64, Inode>, random: Random) -> Machine {
        Machine {
            inodes,
            random,
            sectors: self.sectors,
            capacity_bytes: self.capacity_bytes,
            xattr_bytes_max: self.xattr_bytes_max,
            limits: self.limits,
            now_ns: self.now_ns,
            ..Machine::new(0)
        }
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    /// Counts a call and decides whether it fails before it begins. `Ok(None)`: there is no power.
    pub(super) fn begin(
        &mut self,
        operation: Operation,
        changes: bool,
    ) -> io::Result<Option<Turn>> {
        if self.powerless {
            return Ok(None);
        }
        *self.calls.entry(operation).or_default() += 1;
        if changes {
            self.operations += 1;
            self.now_ns += 1_000_000;
        }
        let number = self.operations;
        if changes && self.cut_at == Some(number) {
            // The call is still carried out, unsynced, so that luck decides what is left of it.
            self.powerless = true;
            return Ok(Some(Turn { number, cut: true, effect: None }));
        }
        if changes && self.read_only && (operation.writes() || operation == Operation::Open) {
            return Err(Errno::ROFS.into());
        }
        // Only calls that get this far are counted against a fault.
        let effect = self.faults.strike(operation);
        if let Some(Effect::Errno(number)) = effect {
            return Err(io::Error::from_raw_os_error(number));
        }
        Ok(Some(Turn { number, cut: false, effect }))
    }

    pub(super) fn inode(&self, number: u64) -> &Inode {
        self.inodes.get(&number).expect("names and handles pin their inodes")
    }

    pub(super) fn inode_mut(&mut self, number: u64) -> &mut Inode {
        self.inodes.get_mut(&number).expect("names and handles pin their inodes")
    }

    /// The inode that a path names.
    pub(super) fn lookup(&self, path: &Path) -> Outcome<u64> {
        check(path)?;
        if !self.inodes.contains_key(&self.root) {
            // The directory a handle stands on was removed, or lost with the power.
            return Err(Errno::STALE);
        }
        let mut at = self.root;
        for name in path.as_os_str().as_bytes().split(|&byte| byte == b'/') {
            if !name.is_empty() {
                at = self.entry(at, name)?.ok_or(Errno::NOENT)?;
            }
        }
        Ok(at)
    }

    /// The inode of a directory.
    pub(super) fn directory(&self, path: &Path) -> Outcome<u64> {
        let number = self.lookup(path)?;
        self.must_be_dir(number)?;
        Ok(number)
    }

    /// The error is the one a path gets that goes on after such an inode.
    fn must_be_dir(&self, number: u64) -> Outcome<()> {
        match self.inode(number).kind {
            Kind::Directory => Ok(()),
            Kind::Symlink => Err(Errno::LOOP),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// What a name stands for in a directory.
    fn entry(&self, dir: u64, name: &[u8]) -> Outcome<Option<u64>> {
        self.must_be_dir(dir)?;
        if name.len() > self.limits.name_bytes_max as usize {
            return Err(Errno::NAMETOOLONG);
        }
        Ok(self.inode(dir).names.get(name).copied())
    }

    /// The directory that holds the last name of a path, and that name. The root has none:
    /// `at_root` says what the call makes of that.
    fn parent(&self, path: &Path, at_root: Errno) -> Outcome<(u64, Vec<u8>)> {
        check(path)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(at_root);
        };
        Ok((self.directory(parent)?, name.as_bytes().to_vec()))
    }

    /// A name and what it stands for now.
    fn place(&self, path: &Path, at_root: Errno) -> Outcome<Place> {
        let (dir, name) = self.parent(path, at_root)?;
        let inode = self.entry(dir, &name)?;
        Ok(Place { dir, name, inode })
    }

    /// Two names, the first of which must stand for something. Both directories are found before
    /// either name, as the kernel does, which decides between two errors.
    fn places(&self, from: &Path, to: &Path) -> Outcome<(Place, u64, Place)> {
        check_both(from, to)?;
        let (from_dir, from_name) = self.parent(from, Errno::BUSY)?;
        let (to_dir, to_name) = self.parent(to, Errno::BUSY)?;
        let inode = self.entry(from_dir, &from_name)?;
        let found = inode.ok_or(Errno::NOENT)?;
        let from = Place { dir: from_dir, name: from_name, inode };
        let inode = self.entry(to_dir, &to_name)?;
        Ok((from, found, Place { dir: to_dir, name: to_name, inode }))
    }

    /// Whether `dir` is `inode` or lies below it.
    fn lies_in(&self, mut dir: u64, inode: u64) -> bool {
        loop {
            if dir == inode {
                return true;
            }
            match self.inode(dir).parents.first() {
                Some(&parent) => dir = parent,
                None => return false,
            }
        }
    }

    /// Makes the change seen, and remembers it until it is durable.
    fn change_names(&mut self, operation: u64, mut change: NameChange) {
        for edit in &change.edits {
            let names = &mut self.inode_mut(edit.dir).names;
            let before = match edit.inode {
                Some(inode) => names.insert(edit.name.clone(), inode),
                None => names.remove(&edit.name),
            };
            if let Some(inode) = before {
                let parents = &mut self.inode_mut(inode).parents;
                let position = parents.iter().position(|&parent| parent == edit.dir);
                parents.swap_remove(position.expect("each name is counted at its inode"));
            }
            if let Some(inode) = edit.inode {
                self.inode_mut(inode).parents.push(edit.dir);
            }
            let now_ns = self.now_ns;
            self.inode_mut(edit.dir).touch(now_ns);
            change.waits_for.insert(edit.dir);
        }
        self.names.record(operation, change);
    }

    /// Makes a new inode with one name.
    pub(super) fn make(
        &mut self,
        operation: u64,
        path: &Path,
        kind: Kind,
        mode: u32,
    ) -> Outcome<u64> {
        let place = self.place(path, Errno::EXIST)?;
        if place.inode.is_some() {
            return Err(Errno::EXIST);
        }
        self.check_inodes()?;
        self.may_change(place.dir)?;
        self.check_name_room(place.dir, &place.name)?;
        let mut inode = Inode::new(kind, mode, self.now_ns, self.limits.room_unit_bytes);
        inode.attributes = self.inherited(place.dir, kind, inode.attributes)?;
        // A number that is free again is given to the next one, as file systems do.
        let number = (ROOT + 1..).find(|number| !self.inodes.contains_key(number));
        let number = number.expect("no machine has that many files");
        inode.durable_attributes = inode.attributes.clone();
        self.inodes.insert(number, inode);
        let change = NameChange {
            made: (kind == Kind::Directory).then_some(number),
            ..place.becomes(Some(number))
        };
        self.change_names(operation, change);
        Ok(number)
    }

    pub(super) fn make_symlink(
        &mut self,
        operation: u64,
        path: &Path,
        target: &[u8],
    ) -> Outcome<()> {
        if target.is_empty() {
            return Err(Errno::NOENT);
        }
        let number = self.make(operation, path, Kind::Symlink, 0o777)?;
        self.inode_mut(number).target = target.to_vec();
        Ok(())
    }

    pub(super) fn make_node(
        &mut self,
        operation: u64,
        path: &Path,
        kind: Kind,
        mode: u32,
        rdev: u64,
    ) -> Outcome<()> {
        if matches!(kind, Kind::Directory | Kind::Symlink) {
            return Err(Errno::INVAL);
        }
        let number = self.make(operation, path, kind, mode)?;
        self.inode_mut(number).rdev = rdev;
        Ok(())
    }

    /// Gives a file one more name.
    pub(super) fn link(&mut self, operation: u64, from: &Path, to: &Path) -> Outcome<()> {
        let (_, number, to) = self.places(from, to)?;
        if to.inode.is_some() {
            return Err(Errno::EXIST);
        }
        if self.inode(number).is_dir() {
            return Err(Errno::PERM);
        }
        self.check_links(number)?;
        self.may_change(number)?;
        self.may_change(to.dir)?;
        self.check_name_room(to.dir, &to.name)?;
        self.change_names(operation, to.becomes(Some(number)));
        Ok(())
    }

    /// Moves a name, over another one if need be.
    pub(super) fn rename(&mut self, operation: u64, from: &Path, to: &Path) -> Outcome<()> {
        let (from, moved, to) = self.places(from, to)?;
        // A directory cannot be moved into itself: nothing would lead to it any more.
        if self.lies_in(to.dir, moved) {
            return Err(Errno::INVAL);
        }
        // Two names of one file: POSIX says to do nothing and call it success.
        if to.inode == Some(moved) {
            return Ok(());
        }
        if let Some(replaced) = to.inode {
            self.may_replace(moved, replaced, from.dir)?;
        } else {
            self.check_name_room(to.dir, &to.name)?;
        }
        for number in [Some(moved), to.inode, Some(from.dir), Some(to.dir)].into_iter().flatten() {
            self.may_change(number)?;
        }
        let is_dir = |number: &u64| self.inode(*number).is_dir();
        let moved_directory = is_dir(&moved) && from.dir != to.dir;
        let removed = to.inode.filter(is_dir);
        // Both edits are one change, so a power cut finds the file under one name exactly.
        let taken = from.becomes(None);
        let mut change = NameChange { moved_directory, removed, ..to.becomes(Some(moved)) };
        change.edits.splice(0..0, taken.edits);
        self.change_names(operation, change);
        Ok(())
    }

    /// Whether a rename may put `moved` in the place of `replaced`.
    fn may_replace(&self, moved: u64, replaced: u64, from_dir: u64) -> Outcome<()> {
        if self.lies_in(from_dir, replaced) {
            return Err(Errno::NOTEMPTY);
        }
        match (self.inode(moved).is_dir(), self.inode(replaced).is_dir()) {
            (true, false) => Err(Errno::NOTDIR),
            (false, true) => Err(Errno::ISDIR),
            (true, true) if !self.inode(replaced).names.is_empty() => Err(Errno::NOTEMPTY),
            _ => Ok(()),
        }
    }

    /// Swaps two names.
    pub(super) fn exchange(&mut self, operation: u64, one: &Path, other: &Path) -> Outcome<()> {
        let (one, one_inode, other) = self.places(one, other)?;
        let other_inode = other.inode.ok_or(Errno::NOENT)?;
        if self.lies_in(other.dir, one_inode) || self.lies_in(one.dir, other_inode) {
            return Err(Errno::INVAL);
        }
        if one_inode == other_inode {
            return Ok(());
        }
        let a_dir = self.inode(one_inode).is_dir() || self.inode(other_inode).is_dir();
        let moved_directory = a_dir && one.dir != other.dir;
        let mut change = one.becomes(Some(other_inode));
        change.edits.extend(other.becomes(Some(one_inode)).edits);
        self.change_names(operation, NameChange { moved_directory, ..change });
        Ok(())
    }

    /// Removes a name. The inode stays for open handles, and for a power cut that undoes this.
    pub(super) fn remove_file(&mut self, operation: u64, path: &Path) -> Outcome<()> {
        let place = self.place(path, Errno::ISDIR)?;
        let number = place.inode.ok_or(Errno::NOENT)?;
        if self.inode(number).is_dir() {
            return Err(Errno::ISDIR);
        }
        self.may_change(number)?;
        self.may_change(place.dir)?;
        self.change_names(operation, place.becomes(None));
        Ok(())
    }

    /// Removes an empty directory.
    pub(super) fn remove_dir(&mut self, operation: u64, path: &Path) -> Outcome<()> {
        let place = self.place(path, Errno::INVAL)?;
        let number = place.inode.ok_or(Errno::NOENT)?;
        if !self.inode(number).is_dir() {
            return Err(Errno::NOTDIR);
        }
        if !self.inode(number).names.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        self.may_change(place.dir)?;
        let change = NameChange { removed: Some(number), ..place.becomes(None) };
        self.change_names(operation, change);
        Ok(())
    }

    /// Refuses what would change a node that nobody may change.
    fn may_change(&self, number: u64) -> Outcome<()> {
        if self.inode(number).immutable { Err(Errno::PERM) } else { Ok(()) }
    }

    /// Changes attributes. They are durable once the directory or file itself, or else every
    /// directory that names the file, is synced.
    pub(super) fn change(&mut self, operation: u64, number: u64, change: &Change) -> Outcome<()> {
        self.may_change(number)?;
        let inode = self.inode(number);
        if change.mode.is_some() && inode.kind == Kind::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        let attributes = changed(inode.attributes.clone(), inode.kind, change);
        self.change_attributes(operation, number, attributes);
        Ok(())
    }

    /// The attributes become these, not durably yet.
    pub(super) fn change_attributes(
        &mut self,
        operation: u64,
        number: u64,
        attributes: Attributes,
    ) {
        let now_ns = self.now_ns;
        let inode = self.inode_mut(number);
        inode.attributes = attributes;
        inode.changed_ns = now_ns.into();
        let waits_for: BTreeSet<u64> = match inode.kind {
            Kind::Directory => BTreeSet::from([number]),
            _ => inode.parents.iter().copied().collect(),
        };
        let attributes = Some((number, inode.attributes.clone()));
        // A file without a name cannot be found again.
        if !waits_for.is_empty() {
            let inodes = BTreeSet::from([number]);
            let change = NameChange { attributes, inodes, waits_for, ..NameChange::default() };
            self.names.record(operation, change);
        }
    }

    /// Makes everything durable.
    pub(super) fn sync_all(&mut self) {
        self.inodes.values_mut().for_each(|inode| inode.history.sync());
        for change in self.names.sync_all() {
            self.make_durable(&change);
        }
    }

    /// Makes durable what [`Names`] says is covered now.
    pub(super) fn sync_dir(&mut self, number: u64) {
        for change in self.names.sync(number) {
            self.make_durable(&change);
        }
    }

    /// Makes attributes of a synced file durable.
    pub(super) fn sync_attributes(&mut self, number: u64) {
        for change in self.names.sync_attributes(number) {
            self.make_durable(&change);
        }
    }

    /// Writes one change to the platter.
    fn make_durable(&mut self, change: &NameChange) {
        for edit in &change.edits {
            let names = &mut self.inode_mut(edit.dir).durable_names;
            let before = match edit.inode {
                Some(inode) => names.insert(edit.name.clone(), inode),
                None => names.remove(&edit.name),
            };
            if let Some(inode) = before {
                self.inode_mut(inode).durable_links -= 1;
            }
            if let Some(inode) = edit.inode {
                self.inode_mut(inode).durable_links += 1;
            }
        }
        if let Some((inode, attributes)) = &change.attributes {
            self.inode_mut(*inode).durable_attributes = attributes.clone();
        }
        for &inode in &change.inodes {
            self.forget_if_gone(inode);
        }
    }

    /// Frees an inode that nobody can reach any more, not even after a power cut.
    pub(super) fn forget_if_gone(&mut self, number: u64) {
        let gone = self
            .inodes
            .get(&number)
            .is_some_and(|inode| !inode.is_live() && inode.durable_links == 0 && number != ROOT);
        if gone && !self.names.mentions(number) {
            self.inodes.remove(&number);
        }
    }

    /// What `lstat` tells; links of directories are counted as ext4 does.
    pub(super) fn metadata(&self, number: u64) -> Metadata {
        let inode = self.inode(number);
        let size_bytes = match inode.kind {
            Kind::File => inode.history.volatile.size_bytes(),
            Kind::Symlink => inode.target.len() as u64,
            _ => 0,
        };
        let subdirectories = || inode.names.values().filter(|&&child| self.inode(child).is_dir());
        let links = match inode.kind {
            Kind::Directory => 2 + subdirectories().count(),
            _ => inode.parents.len(),
        };
        Metadata {
            kind: inode.kind,
            mode: inode.attributes.mode,
            uid: inode.attributes.uid,
            gid: inode.attributes.gid,
            size_bytes,
            allocated_bytes: inode.history.volatile.allocated_bytes(),
            links: links as u32,
            inode: number,
            device: 1,
            immutable: inode.immutable,
            encrypted: false,
            append_only: inode.append_only,
            rdev: inode.rdev,
            accessed_ns: inode.attributes.accessed_ns,
            modified_ns: inode.attributes.modified_ns,
            changed_ns: inode.changed_ns,
        }
    }
}

/// A name in a directory and what it stands for.
struct Place {
    dir: u64,
    name: Vec<u8>,
    inode: Option<u64>,
}

impl Place {
    /// The change that lets the name stand for something else.
    fn becomes(self, inode: Option<u64>) -> NameChange {
        NameChange {
            inodes: self.inode.into_iter().chain(inode).collect(),
            edits: vec![Edit { dir: self.dir, name: self.name, inode }],
            ..NameChange::default()
        }
    }
}
