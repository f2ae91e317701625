//! What a front end asks of a file tree.
//!
//! Promise: the whole border between protocols above and volumes below; a front end is written
//! against [`Tree`] and knows nothing else of what it serves.
//! Never: speaks of a protocol.

mod asker;
mod disk_file;
mod errno;

use std::time::Duration;

pub use crate::{Kind, Seek, Space};
pub use asker::{Asker, Waits, asker, on_behalf_of};
pub use disk_file::DiskFile;
pub use errno::Errno;
pub use errno::{is_other_inode, other_inode};

/// Names a file, directory or other inode of a tree for as long as somebody remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

/// The root directory of every tree.
pub const ROOT: NodeId = NodeId(1);

/// The attributes of a node. Times are nanoseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Whose they are.
    pub node: NodeId,
    /// What it is.
    pub kind: Kind,
    /// Permission bits only (`0o7777`).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size_bytes: u64,
    /// Allocated bytes.
    pub allocated_bytes: u64,
    /// Number of names.
    pub links: u32,
    /// Device number, for device files.
    pub rdev: u64,
    /// Last access.
    pub accessed_ns: i128,
    /// Last change of the contents.
    pub modified_ns: i128,
    /// Last change of the inode.
    pub changed_ns: i128,
}

/// A change of attributes; `None` leaves a field alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Truncates or extends with zeros.
    pub size_bytes: Option<u64>,
    /// Last access, nanoseconds since 1970.
    pub accessed_ns: Option<i128>,
    /// Last change of the contents, nanoseconds since 1970.
    pub modified_ns: Option<i128>,
}

/// What to make under a new name.
#[derive(Clone, Copy, Debug)]
pub struct NewNode<'a> {
    /// What it is. `Symlink` needs `target`.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u32,
    /// Bits that the mode loses, unless the directory hands an access control list down.
    pub umask: u32,
    /// Owner.
    pub uid: u32,
    /// Group (a front end applies the set-group-id rule of directories through the tree).
    pub gid: u32,
    /// Device number, for device files.
    pub rdev: u64,
    /// Where a symbolic link leads.
    pub target: &'a [u8],
}

/// How a rename treats an existing target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameHow {
    /// Replaces it.
    Replace,
    /// Fails with `EEXIST`.
    KeepTarget,
    /// Swaps the two, once for each request.
    Exchange(Asked),
}

/// A request for something that must not be done twice, and whose answer does not follow from what
/// the tree is like then. A front end sends it again if its answer was lost with a process; until
/// then it lets nobody else change what it is about, and asks for nothing else by the same thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The front end's number for it, the same each time.
    pub request: u64,
    /// It was sent before, and may have been done.
    pub again: bool,
}

/// How an extended attribute is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetXattr {
    /// Fails with `EEXIST` if the node has it, unless from this very request.
    pub create: Option<Asked>,
    /// Fails with `ENODATA` unless the node has it.
    pub replace: bool,
    /// A list of access takes the set-group-id bit away: its owner is not of the group.
    pub clear_group_id: bool,
}

/// How `allocate` changes a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocate {
    /// Reserves space; the file grows if the range ends behind it.
    Reserve {
        /// The size stays as it is.
        keep_size: bool,
    },
    /// The range reads as zeros; the size stays as it is.
    PunchHole,
    /// The range reads as zeros.
    ZeroRange {
        /// The size stays as it is.
        keep_size: bool,
    },
}

/// One name of a listing.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// The name.
    pub name: &'a [u8],
    /// A number for the inode that stays the same while the node is known.
    pub inode: u64,
    /// What it is.
    pub kind: Kind,
    /// Pass this to [`Tree::list`] to go on behind this name.
    pub cookie: u64,
}

/// A file tree. Every method may be called from several threads at once.
///
/// A method with a body does what is right for a tree whose names never change: nothing is made,
/// renamed or removed, and every node is known for as long as the tree is.
///
/// Durability: what an `Ok` of a change means (class Memory or Disk) is the tree's matter;
/// [`Tree::sync_is_needed`] tells a front end whether a program's `fsync` has work to do.
pub trait Tree: Send + Sync {
    /// Finds a name. Counts one more remembrance of the node.
    fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno>;
    /// Takes back `count` remembrances of a node.
    fn forget(&self, _node: NodeId, _count: u64) {}
    /// Tells the attributes.
    fn attributes(&self, node: NodeId) -> Result<Attributes, Errno>;
    /// Changes attributes and tells the new ones.
    fn set_attributes(&self, node: NodeId, set: &SetAttributes) -> Result<Attributes, Errno>;
    /// Where a symbolic link leads.
    fn read_link(&self, _node: NodeId) -> Result<Vec<u8>, Errno> {
        Err(Errno::INVAL)
    }
    /// Makes a node under a new name; `EEXIST` if the name is taken. Counts one remembrance.
    fn make(&self, _parent: NodeId, _name: &[u8], _new: &NewNode<'_>) -> Result<Attributes, Errno> {
        Err(Errno::PERM)
    }
    /// Makes a file without a name, for as long as it is open or until it is given one by
    /// [`Self::link`]. Group and access control lists are as if it were made in `directory`. Counts
    /// one remembrance.
    fn make_unnamed(&self, _directory: NodeId, _new: &NewNode<'_>) -> Result<Attributes, Errno> {
        Err(Errno::NOSYS)
    }
    /// Gives a node a second name. Counts one more remembrance.
    fn link(&self, _node: NodeId, _parent: NodeId, _name: &[u8]) -> Result<Attributes, Errno> {
        Err(Errno::PERM)
    }
    /// Removes the name of anything but a directory.
    fn remove_file(&self, _parent: NodeId, _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::PERM)
    }
    /// Removes an empty directory.
    fn remove_dir(&self, _parent: NodeId, _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::PERM)
    }
    /// Renames.
    fn rename(
        &self,
        _from: (NodeId, &[u8]),
        _to: (NodeId, &[u8]),
        _how: RenameHow,
    ) -> Result<(), Errno> {
        Err(Errno::PERM)
    }
    /// False if a node is all there for as long as it is remembered, without a name too, so that
    /// nobody needs to tell of opens and closes.
    fn counts_opens(&self) -> bool {
        true
    }
    /// A mount of the tree begins, and the kernel keeps pages of its files, or does not. It stays
    /// so for all processes that serve the mount.
    fn mount_begins(&self, _keeps_pages: bool) -> Result<(), Errno> {
        Ok(())
    }
    /// What was said when the mount began that there is.
    fn mount_keeps_pages(&self) -> Option<bool> {
        None
    }
    /// A program opened the node (any flags but truncation, which comes as `set_attributes`).
    fn opened(&self, _node: NodeId) -> Result<(), Errno> {
        Ok(())
    }
    /// The last user of one earlier `opened` closed it.
    fn closed(&self, _node: NodeId) {}
    /// Reads; fewer bytes than asked means end of file.
    fn read(&self, node: NodeId, into: &mut [u8], offset: u64) -> Result<usize, Errno>;
    /// Writes all of `from`. `clear_privileges` drops set-user-id and set-group-id bits.
    fn write(
        &self,
        node: NodeId,
        from: &[u8],
        offset: u64,
        clear_privileges: bool,
    ) -> Result<(), Errno>;
    /// Reserves, punches or zeroes a range.
    fn allocate(&self, node: NodeId, how: Allocate, offset: u64, bytes: u64) -> Result<(), Errno>;
    /// Where the next data or hole begins, at `offset` or behind it. `ENXIO` at the end.
    fn seek(&self, node: NodeId, offset: u64, what: Seek) -> Result<u64, Errno> {
        let size_bytes = self.attributes(node)?.size_bytes;
        let found = if what == Seek::Data { offset } else { size_bytes };
        if offset < size_bytes { Ok(found) } else { Err(Errno::NXIO) }
    }
    /// Makes everything acknowledged so far as durable as the tree's class promises.
    fn sync(&self, node: NodeId) -> Result<(), Errno>;
    /// False if an acknowledged change is already as durable as promised: `sync` never has work.
    fn sync_is_needed(&self) -> bool;
    /// Lists names behind `cookie` (0: from the start) until `sink` returns false.
    /// Cookies stay valid while names come and go, and across a restart. `.` and `..` are left out.
    fn list(
        &self,
        directory: NodeId,
        cookie: u64,
        sink: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<(), Errno>;
    /// The value of an extended attribute; `ENODATA` if there is none. This and the three that
    /// follow: a tree without any says `ENOSYS`.
    fn xattr(&self, _node: NodeId, _name: &[u8]) -> Result<Vec<u8>, Errno> {
        Err(Errno::NOSYS)
    }
    /// The names of all extended attributes.
    fn xattr_names(&self, _node: NodeId) -> Result<Vec<Box<[u8]>>, Errno> {
        Err(Errno::NOSYS)
    }
    /// Gives a node an extended attribute. One that is an access control list changes the mode.
    fn set_xattr(
        &self,
        _node: NodeId,
        _name: &[u8],
        _value: &[u8],
        _how: &SetXattr,
    ) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }
    /// Takes an extended attribute away; `ENODATA` if there is none, unless this very request took
    /// it.
    fn remove_xattr(&self, _node: NodeId, _name: &[u8], _asked: Asked) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }
    /// Free and total space.
    fn space(&self) -> Result<Space, Errno>;
    /// Waits until it may be of use to ask again for what was refused with [`Errno::LATER`], but
    /// not much longer than `patience`. A tree that never says so has nothing to wait for.
    fn wait_until_later(&self, _patience: Duration) {}
    /// How long attributes and names may be remembered by whoever asked.
    fn remember_for(&self) -> Duration;
}
