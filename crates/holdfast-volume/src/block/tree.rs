//! A disk as the one file of a directory, for users that want a file: loop devices, emulators.
//!
//! Promise: the file has the disk's bytes and its size; its attributes can be changed.
//! Never: changes a name or a size, or writes behind the end, which is "no space" as on a device.

use std::time::Duration;

use holdfast_io::Blocks;

use super::{BlockVolume, is_within};
use crate::tree::{
    Allocate, Attributes, Errno, Listed, NewNode, NodeId, RenameHow, SetAttributes, Space, Tree,
};

impl BlockVolume {
    /// `EISDIR` for the directory.
    fn require_disk(&self, node: NodeId) -> Result<(), Errno> {
        if node == self.node.id { Ok(()) } else { Err(Errno::ISDIR) }
    }
}

impl Tree for BlockVolume {
    fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        self.volume.lookup(parent, name)
    }

    /// The disk is known as long as the volume is open.
    fn forget(&self, _: NodeId, _: u64) {}

    fn attributes(&self, node: NodeId) -> Result<Attributes, Errno> {
        self.volume.attributes(node)
    }

    /// Cutting the file short, as opening it to be written anew does, would be the end of the disk.
    fn set_attributes(&self, node: NodeId, set: &SetAttributes) -> Result<Attributes, Errno> {
        let is_resized = set.size_bytes.is_some_and(|bytes| bytes != self.size_bytes());
        if node != self.node.id || is_resized {
            return Err(Errno::PERM);
        }
        self.volume.set_attributes(node, &SetAttributes { size_bytes: None, ..*set })
    }

    fn read_link(&self, node: NodeId) -> Result<Vec<u8>, Errno> {
        self.volume.read_link(node)
    }

    fn make(&self, _: NodeId, _: &[u8], _: &NewNode<'_>) -> Result<Attributes, Errno> {
        Err(Errno::PERM)
    }

    fn link(&self, _: NodeId, _: NodeId, _: &[u8]) -> Result<Attributes, Errno> {
        Err(Errno::PERM)
    }

    fn remove_file(&self, _: NodeId, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::PERM)
    }

    fn remove_dir(&self, _: NodeId, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::PERM)
    }

    fn rename(&self, _: (NodeId, &[u8]), _: (NodeId, &[u8]), _: RenameHow) -> Result<(), Errno> {
        Err(Errno::PERM)
    }

    /// The disk is open as long as the volume is.
    fn opened(&self, _: NodeId) -> Result<(), Errno> {
        Ok(())
    }

    fn closed(&self, _: NodeId) {}

    fn read(&self, node: NodeId, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        self.require_disk(node)?;
        let left = self.size_bytes().saturating_sub(offset);
        let length = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if length > 0 {
            Blocks::read(self, &mut into[..length], offset)?;
        }
        Ok(length)
    }

    fn write(&self, node: NodeId, from: &[u8], offset: u64, _: bool) -> Result<(), Errno> {
        self.require_disk(node)?;
        Ok(Blocks::write(self, from, offset)?)
    }

    fn allocate(&self, node: NodeId, how: Allocate, offset: u64, bytes: u64) -> Result<(), Errno> {
        self.require_disk(node)?;
        if bytes == 0 {
            return Err(Errno::INVAL);
        }
        match how {
            Allocate::PunchHole => Ok(self.discard(offset, bytes)?),
            Allocate::ZeroRange { .. } => Ok(self.write_zeroes(offset, bytes)?),
            Allocate::Reserve { .. } if is_within(&self.node.body(), offset, bytes) => {
                self.volume.allocate(node, how, offset, bytes)
            }
            Allocate::Reserve { .. } => Err(Errno::NOSPC),
        }
    }

    fn sync(&self, node: NodeId) -> Result<(), Errno> {
        self.volume.sync(node)
    }

    fn sync_is_needed(&self) -> bool {
        self.volume.sync_is_needed()
    }

    fn list(
        &self,
        directory: NodeId,
        cookie: u64,
        sink: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<(), Errno> {
        self.volume.list(directory, cookie, sink)
    }

    fn space(&self) -> Result<Space, Errno> {
        self.volume.space()
    }

    fn remember_for(&self) -> Duration {
        self.volume.remember_for()
    }
}
