//! A directory as a tree, with the syncs of a modelled platter.
//!
//! Promise: the directory below changes at once and holds what the tree shows; only a sync takes
//! time, and only for what was changed since the last.
//! Never: syncs the directory below, unless it was made to.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_io::tree::{
    Allocate, Attributes, Errno, Listed, NewNode, NodeId, RenameHow, SetAttributes, Space, Tree,
};
use holdfast_io::{Change, Files, Kind, Metadata, OpenFile, OpenHow};

use super::platter::Platter;
use super::table::Table;
use super::unsynced::Unsynced;

/// What a change of a name or of an inode adds to be flushed.
const INODE_BYTES: u64 = 4096;
/// Nobody else changes the directory below.
const REMEMBER_FOR: Duration = Duration::from_secs(3600);

/// The tree.
pub(super) struct Passthrough {
    files: Arc<dyn Files>,
    platter: Platter,
    table: Mutex<Table>,
    unsynced: Option<Unsynced>,
    syncs_below: bool,
}

impl Passthrough {
    /// Serves what `files` sees. A disk whose power can fail remembers what it would lose; one that
    /// syncs below hands every sync on.
    pub(super) fn new(
        files: Arc<dyn Files>,
        platter: Platter,
        power_can_fail: bool,
        syncs_below: bool,
    ) -> std::io::Result<Self> {
        let root = files.metadata(Path::new(""))?;
        let table = Mutex::new(Table::new(root.inode));
        let unsynced = power_can_fail.then(Unsynced::new);
        Ok(Self { files, platter, table, unsynced, syncs_below })
    }

    /// What a power cut would take, if it can.
    pub(super) fn unsynced(&self) -> Option<&Unsynced> {
        self.unsynced.as_ref()
    }

    /// The disk.
    pub(super) fn platter(&self) -> &Platter {
        &self.platter
    }

    /// Held across every change of a name, so that table and directory agree.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node's open file, or a fresh one.
    fn file(&self, node: NodeId) -> Result<Arc<dyn OpenFile>, Errno> {
        let mut table = self.table();
        if let Some(file) = &table.node(node)?.file {
            return Ok(file.clone());
        }
        let path = table.path(node)?;
        Ok(self.files.open(&path, OpenHow { write: true, ..OpenHow::default() })?)
    }

    fn metadata(&self, node: NodeId) -> Result<Metadata, Errno> {
        let mut table = self.table();
        match &table.node(node)?.file {
            Some(file) => Ok(file.metadata()?),
            None => Ok(self.files.metadata(&table.path(node)?)?),
        }
    }

    fn change(&self, node: NodeId, change: &Change) -> Result<(), Errno> {
        let mut table = self.table();
        match &table.node(node)?.file {
            Some(file) => Ok(file.change(change)?),
            None => Ok(self.files.change(&table.path(node)?, change)?),
        }
    }

    fn set_len(&self, file: &dyn OpenFile, bytes: u64) -> std::io::Result<()> {
        match &self.unsynced {
            Some(unsynced) => unsynced.set_len(file, bytes),
            None => file.set_len(bytes),
        }
    }

    fn punch(&self, file: &dyn OpenFile, offset: u64, bytes: u64) -> std::io::Result<()> {
        match &self.unsynced {
            Some(unsynced) => unsynced.punch(file, offset, bytes),
            None => file.punch(offset, bytes),
        }
    }

    fn sync_below(&self, node: NodeId) -> Result<(), Errno> {
        if self.metadata(node)?.kind == Kind::Directory {
            let path = self.table().path(node)?;
            return Ok(self.files.sync_dir(&path)?);
        }
        Ok(self.file(node)?.sync_data()?)
    }

    fn mark_dirty(&self, node: NodeId, bytes: u64) -> Result<(), Errno> {
        self.table().node(node)?.dirty_bytes.fetch_add(bytes, Relaxed);
        Ok(())
    }

    fn make_bare(&self, path: &Path, new: &NewNode<'_>) -> Result<(), Errno> {
        let made = match new.kind {
            Kind::Directory => self.files.make_dir(path, new.mode & !new.umask),
            Kind::Symlink => self.files.make_symlink(path, new.target),
            kind => self.files.make_node(path, kind, new.mode & !new.umask, new.rdev),
        };
        Ok(made?)
    }
}

impl Tree for Passthrough {
    fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        let mut table = self.table();
        let found = self.files.metadata(&table.path_of(parent, name)?)?;
        let node = table.remember(parent, name, found.inode);
        Ok(attributes(node, &found))
    }

    fn forget(&self, node: NodeId, count: u64) {
        self.table().forget(node, count);
    }

    fn attributes(&self, node: NodeId) -> Result<Attributes, Errno> {
        Ok(attributes(node, &self.metadata(node)?))
    }

    fn set_attributes(&self, node: NodeId, set: &SetAttributes) -> Result<Attributes, Errno> {
        if let Some(bytes) = set.size_bytes {
            self.set_len(&*self.file(node)?, bytes)?;
        }
        let change = Change {
            mode: set.mode,
            uid: set.uid,
            gid: set.gid,
            accessed_ns: set.accessed_ns,
            modified_ns: set.modified_ns,
        };
        if change != Change::default() {
            self.change(node, &change)?;
        }
        self.mark_dirty(node, INODE_BYTES)?;
        self.attributes(node)
    }

    fn read_link(&self, node: NodeId) -> Result<Vec<u8>, Errno> {
        let path = self.table().path(node)?;
        Ok(self.files.read_link(&path)?)
    }

    fn make(&self, parent: NodeId, name: &[u8], new: &NewNode<'_>) -> Result<Attributes, Errno> {
        let mut table = self.table();
        let path = table.path_of(parent, name)?;
        self.make_bare(&path, new)?;
        let owner = Change { uid: Some(new.uid), gid: Some(new.gid), ..Change::default() };
        self.files.change(&path, &owner)?;
        let made = self.files.metadata(&path)?;
        let node = table.remember(parent, name, made.inode);
        drop(table);
        self.mark_dirty(parent, INODE_BYTES)?;
        self.mark_dirty(node, INODE_BYTES)?;
        Ok(attributes(node, &made))
    }

    fn link(&self, node: NodeId, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        let mut table = self.table();
        let path = table.path_of(parent, name)?;
        self.files.link(&table.path(node)?, &path)?;
        let linked = self.files.metadata(&path)?;
        table.remember(parent, name, linked.inode);
        drop(table);
        self.mark_dirty(parent, INODE_BYTES)?;
        Ok(attributes(node, &linked))
    }

    fn remove_file(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        let mut table = self.table();
        let path = table.path_of(parent, name)?;
        let found = self.files.metadata(&path)?;
        self.files.remove_file(&path)?;
        table.unname(parent, name, found.inode, found.links == 1);
        drop(table);
        self.mark_dirty(parent, INODE_BYTES)
    }

    fn remove_dir(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        let mut table = self.table();
        let path = table.path_of(parent, name)?;
        let found = self.files.metadata(&path)?;
        self.files.remove_dir(&path)?;
        table.unname(parent, name, found.inode, true);
        drop(table);
        self.mark_dirty(parent, INODE_BYTES)
    }

    fn rename(
        &self,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
        how: RenameHow,
    ) -> Result<(), Errno> {
        let mut table = self.table();
        let (old, new) = (table.path_of(from.0, from.1)?, table.path_of(to.0, to.1)?);
        let (moved, target) = (self.files.metadata(&old)?, self.files.metadata(&new));
        match (how, &target) {
            (RenameHow::KeepTarget, Ok(_)) => return Err(Errno::EXIST),
            (RenameHow::Exchange(_), _) => self.files.exchange(&old, &new)?,
            // Two names of one file: the system call does nothing.
            (_, Ok(target)) if target.inode == moved.inode => return Ok(()),
            _ => self.files.rename(&old, &new)?,
        }
        if let Ok(target) = target {
            let gone =
                how == RenameHow::Replace && (target.links == 1 || target.kind == Kind::Directory);
            table.unname(to.0, to.1, target.inode, gone);
            if matches!(how, RenameHow::Exchange(_)) {
                table.name(from.0, from.1, target.inode);
            }
        }
        table.unname(from.0, from.1, moved.inode, false);
        table.name(to.0, to.1, moved.inode);
        drop(table);
        self.mark_dirty(from.0, INODE_BYTES)?;
        self.mark_dirty(to.0, INODE_BYTES)
    }

    fn opened(&self, node: NodeId) -> Result<(), Errno> {
        let file = self.file(node)?;
        let mut table = self.table();
        let found = table.node(node)?;
        found.file.get_or_insert(file);
        found.opens += 1;
        Ok(())
    }

    fn closed(&self, node: NodeId) {
        let mut table = self.table();
        if let Ok(found) = table.node(node) {
            found.opens = found.opens.saturating_sub(1);
            if found.opens == 0 {
                found.file = None;
            }
        }
        table.drop_unused(node);
    }

    fn read(&self, node: NodeId, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        Ok(self.file(node)?.read_full_at(into, offset)?)
    }

    fn write(
        &self,
        node: NodeId,
        from: &[u8],
        offset: u64,
        clear_privileges: bool,
    ) -> Result<(), Errno> {
        let file = self.file(node)?;
        match &self.unsynced {
            Some(unsynced) => unsynced.write(file.clone(), from, offset)?,
            None => file.write_all_at(from, offset)?,
        }
        if clear_privileges {
            let mode = Some(file.metadata()?.mode & 0o1777);
            file.change(&Change { mode, ..Change::default() })?;
        }
        self.mark_dirty(node, from.len() as u64)
    }

    fn allocate(&self, node: NodeId, how: Allocate, offset: u64, bytes: u64) -> Result<(), Errno> {
        let file = self.file(node)?;
        let keep_size = match how {
            Allocate::Reserve { keep_size } => {
                file.reserve(offset, bytes)?;
                keep_size
            }
            Allocate::ZeroRange { keep_size } => {
                self.punch(&*file, offset, bytes)?;
                keep_size
            }
            Allocate::PunchHole => {
                self.punch(&*file, offset, bytes)?;
                true
            }
        };
        let end = offset.checked_add(bytes).ok_or(Errno::FBIG)?;
        if !keep_size && file.metadata()?.size_bytes < end {
            self.set_len(&*file, end)?;
        }
        self.mark_dirty(node, INODE_BYTES)
    }

    fn sync(&self, node: NodeId) -> Result<(), Errno> {
        let dirty_bytes: Arc<AtomicU64> = self.table().node(node)?.dirty_bytes.clone();
        let flush = || self.platter.flush(&dirty_bytes);
        match &self.unsynced {
            Some(unsynced) => unsynced.sync(self.metadata(node)?.inode, flush),
            None => flush(),
        }
        if self.syncs_below { self.sync_below(node) } else { Ok(()) }
    }

    fn sync_is_needed(&self) -> bool {
        true
    }

    /// In the order of a hash of the names, which is also the cookie: it does not depend on which
    /// other names there are. Of two names with one hash of 62 bits, a listing that was cut
    /// between them would miss the second.
    fn list(
        &self,
        directory: NodeId,
        cookie: u64,
        sink: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<(), Errno> {
        let path = self.table().path(directory)?;
        let mut names = self.files.read_dir(&path)?;
        names.retain(|entry| hash(&entry.name) > cookie);
        names.sort_by_cached_key(|entry| hash(&entry.name));
        for entry in &names {
            let (inode, kind) = (entry.inode, entry.kind);
            if !sink(Listed { name: &entry.name, inode, kind, cookie: hash(&entry.name) }) {
                break;
            }
        }
        Ok(())
    }

    fn space(&self) -> Result<Space, Errno> {
        Ok(self.files.space()?)
    }

    fn remember_for(&self) -> Duration {
        REMEMBER_FOR
    }
}

/// FNV-1a, folded to 62 bits, never 0.
fn hash(name: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    let hash = name.iter().fold(0xCBF2_9CE4_8422_2325, step);
    (hash >> 2).max(1)
}

fn attributes(node: NodeId, found: &Metadata) -> Attributes {
    Attributes {
        node,
        kind: found.kind,
        mode: found.mode,
        uid: found.uid,
        gid: found.gid,
        size_bytes: found.size_bytes,
        allocated_bytes: found.allocated_bytes,
        links: found.links,
        rdev: found.rdev,
        accessed_ns: found.accessed_ns,
        modified_ns: found.modified_ns,
        changed_ns: found.changed_ns,
    }
}
