//! A disk that is not a volume's as a tree: a directory with one file in it.
//!
//! Promise: the file has the disk's bytes and its size, and its name is the caller's, whichever
//! process serves it. What is not on the disk is refused: there is no place for it.
//! Never: changes a name, a size or an attribute, or writes behind the end, which is "no space" as
//! on a device.

use std::time::Duration;

use holdfast_io::Blocks;
use holdfast_io::tree::{
    Allocate, Attributes, DiskFile, Errno, Kind, Listed, NodeId, ROOT, Seek, SetAttributes, Space,
    Tree,
};

const FILE: NodeId = NodeId(2);
/// Only its owner may see the bytes of a disk.
const FILE_MODE: u32 = 0o600;
const ROOT_MODE: u32 = 0o755;
/// Names and attributes are what they are for as long as it is mounted.
const REMEMBER: Duration = Duration::from_secs(3600);
const BLOCK_BYTES: u32 = 4096;
const NAME_BYTES_MAX: u32 = 255;

/// A disk as the one file of a directory, for users that want a file: loop devices, emulators.
/// Root owns both, and all their times are 1970: a disk has no place for either.
///
/// Durability: that of the disk.
pub struct DiskTree<'b> {
    name: &'b str,
    blocks: &'b dyn Blocks,
}

impl<'b> DiskTree<'b> {
    /// A directory in which `blocks` is the file `name`.
    pub fn new(name: &'b str, blocks: &'b dyn Blocks) -> DiskTree<'b> {
        DiskTree { name, blocks }
    }

    fn file(&self) -> Attributes {
        let bytes = self.blocks.size_bytes();
        Attributes {
            node: FILE,
            kind: Kind::File,
            mode: FILE_MODE,
            uid: 0,
            gid: 0,
            size_bytes: bytes,
            allocated_bytes: bytes,
            links: 1,
            rdev: 0,
            accessed_ns: 0,
            modified_ns: 0,
            changed_ns: 0,
        }
    }

    fn root(&self) -> Attributes {
        let (kind, mode) = (Kind::Directory, ROOT_MODE);
        let (size_bytes, allocated_bytes) = (0, 0);
        Attributes { node: ROOT, kind, mode, size_bytes, allocated_bytes, links: 2, ..self.file() }
    }

    fn bytes_of(&self, node: NodeId) -> Result<DiskFile<'b>, Errno> {
        DiskFile::meant(self.blocks, node == FILE)
    }
}

impl Tree for DiskTree<'_> {
    fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        match parent {
            ROOT if name == self.name.as_bytes() => Ok(self.file()),
            ROOT => Err(Errno::NOENT),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn attributes(&self, node: NodeId) -> Result<Attributes, Errno> {
        match node {
            ROOT => Ok(self.root()),
            FILE => Ok(self.file()),
            _ => Err(Errno::STALE),
        }
    }

    /// Cutting the file short, as opening it to be written anew does, would be the end of the disk.
    fn set_attributes(&self, node: NodeId, set: &SetAttributes) -> Result<Attributes, Errno> {
        let found = self.attributes(node)?;
        let size_bytes = Some(found.size_bytes);
        let nothing = SetAttributes { size_bytes, ..SetAttributes::default() };
        if *set == nothing { Ok(found) } else { Err(Errno::PERM) }
    }

    fn read(&self, node: NodeId, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        self.bytes_of(node)?.read(into, offset)
    }

    fn write(&self, node: NodeId, from: &[u8], offset: u64, _: bool) -> Result<(), Errno> {
        self.bytes_of(node)?.write(from, offset)
    }

    /// A disk has its space.
    fn allocate(&self, node: NodeId, how: Allocate, offset: u64, bytes: u64) -> Result<(), Errno> {
        self.bytes_of(node)?.allocate(how, offset, bytes, || Ok(()))
    }

    fn seek(&self, node: NodeId, offset: u64, what: Seek) -> Result<u64, Errno> {
        self.bytes_of(node)?.seek(offset, what)
    }

    fn sync(&self, _: NodeId) -> Result<(), Errno> {
        Ok(self.blocks.flush()?)
    }

    /// The disk knows whether it has.
    fn sync_is_needed(&self) -> bool {
        true
    }

    fn list(
        &self,
        directory: NodeId,
        cookie: u64,
        sink: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<(), Errno> {
        if directory != ROOT {
            return Err(Errno::NOTDIR);
        }
        if cookie == 0 {
            let (name, kind) = (self.name.as_bytes(), Kind::File);
            sink(Listed { name, inode: FILE.0, kind, cookie: 1 });
        }
        Ok(())
    }

    /// The disk has all there is.
    fn space(&self) -> Result<Space, Errno> {
        Ok(Space {
            total_bytes: self.blocks.size_bytes(),
            free_bytes: 0,
            available_bytes: 0,
            total_inodes: 2,
            free_inodes: 0,
            name_bytes_max: NAME_BYTES_MAX,
            block_bytes: BLOCK_BYTES,
            room_unit_bytes: BLOCK_BYTES.into(),
            read_only: false,
        })
    }

    fn remember_for(&self) -> Duration {
        REMEMBER
    }
}
