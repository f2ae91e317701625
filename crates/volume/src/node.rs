//! One inode of a volume as memory has it.
//!
//! Promise: attributes are what was acknowledged last; extents and the valid part of the home file
//! together give every byte.
//! Never: knows where the node stands in the tree.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use holdfast_io::tree::{Attributes, Errno, NodeId};
use holdfast_io::{Change, Kind, Metadata, OpenFile};
use holdfast_log::Lsn;

use crate::changes::xattr::Xattrs;
use crate::home::room_unit::RoomUnit;
use crate::overlay::allocated::Allocated;
use crate::overlay::cuts::Cuts;
use crate::overlay::extents::{Extents, Piece};
use crate::overlay::recent::Recent;
use crate::overlay::writing::WritingFile;

/// An inode.
pub(crate) struct Node {
    pub(crate) id: NodeId,
    /// How often front ends were told of it, by this process or one before it, and have not
    /// forgotten it: at the least as often as the kernel remembers.
    remembered: AtomicU64,
    /// The file on the home, kept for the next read.
    file: Mutex<Option<Arc<dyn OpenFile>>>,
    body: RwLock<Body>,
}

/// The part of a node that its lock guards.
pub(crate) struct Body {
    pub(crate) attributes: Attributes,
    /// Where a symbolic link leads.
    pub(crate) target: Vec<u8>,
    /// Bytes that stand in the log and not yet in the home.
    pub(crate) extents: Extents,
    /// How far the home file counts.
    pub(crate) cuts: Cuts,
    pub(crate) xattrs: Xattrs,
    /// Where the last record of this node stands.
    pub(crate) last: Lsn,
    /// What was written last, to log only what differs.
    pub(crate) recent: Recent,
    /// Its blocks that have room, of an ordinary file; `None` while nothing has changed what the
    /// home has of it, and nobody has asked.
    pub(crate) allocated: Option<Allocated>,
    /// The home takes no change of it: it is immutable there, or only appended to. Or its owner can
    /// keep the home from it by taking a key away.
    pub(crate) is_fixed: bool,
    /// The home's file, while the log has something for it.
    pub(crate) writing: Option<WritingFile>,
    /// How often extents and cuts were let go because the home has them.
    pub(crate) settled: u64,
}

impl Body {
    /// The file ends at `size_bytes` from the record at `at` on, and nothing behind that has room,
    /// whether it was longer, shorter or as long.
    pub(crate) fn resize(&mut self, size_bytes: u64, at: Lsn) {
        if size_bytes < self.attributes.size_bytes {
            self.extents.cut(size_bytes);
            self.recent.forget();
            self.cuts.cut(size_bytes, at);
        }
        self.allocate(|allocated| allocated.cut(size_bytes));
        self.attributes.size_bytes = size_bytes;
    }

    /// Which blocks have room changed.
    pub(crate) fn allocate(&mut self, change: impl FnOnce(&mut Allocated)) {
        if let Some(allocated) = &mut self.allocated {
            change(allocated);
            self.attributes.allocated_bytes = allocated.bytes();
        }
    }

    /// A range becomes a hole, as far as the file goes: nothing behind its end is given back.
    pub(crate) fn punch(&mut self, offset: u64, end: u64) {
        let end = end.min(self.attributes.size_bytes);
        self.allocate(|allocated| allocated.remove(offset, end.saturating_sub(offset)));
    }

    /// Bytes of the blocks in a range that have no room yet.
    pub(crate) fn unallocated_bytes(&self, offset: u64, bytes: u64) -> u64 {
        self.allocated.as_ref().map_or(bytes, |allocated| allocated.missing(offset, bytes))
    }

    /// `EPERM` if the home takes no change of it.
    pub(crate) fn require_loose(&self) -> Result<(), Errno> {
        if self.is_fixed { Err(Errno::PERM) } else { Ok(()) }
    }

    /// The contents changed.
    pub(crate) fn touch(&mut self, at_ns: i64, at: Lsn) {
        self.attributes.modified_ns = at_ns.into();
        self.attributes.changed_ns = at_ns.into();
        self.last = at;
    }

    /// Attributes changed.
    pub(crate) fn change(&mut self, change: &Change, at_ns: i64, at: Lsn) {
        let attributes = &mut self.attributes;
        attributes.mode = change.mode.unwrap_or(attributes.mode);
        attributes.uid = change.uid.unwrap_or(attributes.uid);
        attributes.gid = change.gid.unwrap_or(attributes.gid);
        attributes.accessed_ns = change.accessed_ns.unwrap_or(attributes.accessed_ns);
        attributes.modified_ns = change.modified_ns.unwrap_or(attributes.modified_ns);
        attributes.changed_ns = at_ns.into();
        self.last = at;
    }

    /// Everything below `upto` is in the home.
    pub(crate) fn applied(&mut self, upto: Lsn) {
        self.extents.drop_below(upto);
        self.applied_cuts(upto);
    }

    /// Every cut below `upto` is in the home.
    pub(crate) fn applied_cuts(&mut self, upto: Lsn) {
        self.cuts.applied(upto);
        self.xattrs.applied(upto);
        self.settled += 1;
    }

    /// What stands below `upto` where these pieces are is in the home.
    pub(crate) fn applied_pieces(&mut self, pieces: &[Piece], upto: Lsn) {
        self.extents.drop_within(pieces, upto);
        self.settled += 1;
    }

    /// The home has everything below `upto`, and its file can be closed if that is all.
    pub(crate) fn let_go(&mut self, upto: Lsn) {
        if self.is_applied(upto) {
            self.writing = None;
        }
    }

    /// True if the home, which has everything below `upto`, has all of this node.
    pub(crate) fn is_applied(&self, upto: Lsn) -> bool {
        self.last < upto && self.extents.is_empty() && self.xattrs.is_applied()
    }
}

impl Node {
    /// A node that the home has.
    pub(crate) fn from_home(id: NodeId, metadata: &Metadata, target: Vec<u8>) -> Node {
        let (cuts, xattrs) = (Cuts::default(), Xattrs::default());
        let node = Node::new(attributes_of(id, metadata), target, cuts, xattrs);
        let Metadata { immutable, encrypted, append_only, .. } = *metadata;
        node.body_mut().is_fixed = immutable || encrypted || append_only;
        node
    }

    /// A node that only the log has, made by the record at `at`.
    pub(crate) fn from_log(
        attributes: Attributes,
        target: Vec<u8>,
        at: Lsn,
        unit: RoomUnit,
    ) -> Node {
        let mut cuts = Cuts::default();
        cuts.cut(0, at);
        let node = Node::new(attributes, target, cuts, Xattrs::none_at_home());
        {
            let mut body = node.body_mut();
            body.last = at;
            body.allocated = (body.attributes.kind == Kind::File).then(|| Allocated::none(unit));
        }
        node
    }

    fn new(attributes: Attributes, target: Vec<u8>, cuts: Cuts, xattrs: Xattrs) -> Node {
        Node {
            id: attributes.node,
            remembered: AtomicU64::new(0),
            file: Mutex::new(None),
            body: RwLock::new(Body {
                attributes,
                target,
                extents: Extents::default(),
                cuts,
                xattrs,
                last: Lsn(0),
                recent: Recent::default(),
                allocated: None,
                is_fixed: false,
                writing: None,
                settled: 0,
            }),
        }
    }

    /// What the node is now. Readers of one node do not wait for each other.
    pub(crate) fn body(&self) -> RwLockReadGuard<'_, Body> {
        self.body.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the node is now, for changing. Held while the change is logged, so that the log has
    /// changes in the order in which they are seen.
    pub(crate) fn body_mut(&self) -> RwLockWriteGuard<'_, Body> {
        self.body.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The home's file, if it is open.
    pub(crate) fn file(&self) -> MutexGuard<'_, Option<Arc<dyn OpenFile>>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Earlier processes told of the node `count` times.
    pub(crate) fn inherit(&self, count: u64) {
        self.remembered.fetch_add(count, Ordering::Relaxed);
    }

    /// A front end has been told of the node once more.
    pub(crate) fn remember(&self) {
        self.remembered.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes back `count` remembrances. Returns how many are left.
    ///
    /// The kernel forgets an inode all at once, but it may have looked the name up again before
    /// that is known here. So nothing but the count tells whether the node can go.
    pub(crate) fn forget(&self, count: u64) -> u64 {
        let left = |known: u64| Some(known.saturating_sub(count));
        let before = self.remembered.try_update(Ordering::Relaxed, Ordering::Relaxed, left);
        before.unwrap_or(0).saturating_sub(count)
    }

    /// How often the node is remembered.
    pub(crate) fn remembered(&self) -> u64 {
        self.remembered.load(Ordering::Relaxed)
    }

    /// True while a front end may still ask for the node by number; a program that has it open
    /// keeps it so.
    pub(crate) fn is_remembered(&self) -> bool {
        self.remembered() > 0
    }
}

/// The attributes of what the home has.
pub(crate) fn attributes_of(node: NodeId, metadata: &Metadata) -> Attributes {
    Attributes {
        node,
        kind: metadata.kind,
        mode: metadata.mode,
        uid: metadata.uid,
        gid: metadata.gid,
        size_bytes: metadata.size_bytes,
        allocated_bytes: metadata.allocated_bytes,
        links: metadata.links,
        rdev: metadata.rdev,
        accessed_ns: metadata.accessed_ns,
        modified_ns: metadata.modified_ns,
        changed_ns: metadata.changed_ns,
    }
}
