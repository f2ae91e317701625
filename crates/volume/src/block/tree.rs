//! A disk as the one file of a directory, for users that want a file: loop devices, emulators.
//!
//! Promise: the file has the disk's bytes and its size; its attributes can be changed.
//! Never: changes a name or a size, or writes behind the end, which is "no space" as on a device.

use std::time::Duration;

use holdfast_io::Blocks;

use super::BlockVolume;
use holdfast_io::tree::DiskFile;
use holdfast_io::tree::{
    Allocate, Attributes, Errno, Listed, NodeId, Seek, SetAttributes, Space, Tree,
};

impl BlockVolume {
    fn file(&self, node: NodeId) -> Result<DiskFile<'_>, Errno> {
        DiskFile::meant(self, node == self.node.id)
    }
}

impl Tree for BlockVolume {
    fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        self.volume.lookup(parent, name)
    }

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

    fn read(&self, node: NodeId, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        self.file(node)?.read(into, offset)
    }

    fn write(&self, node: NodeId, from: &[u8], offset: u64, _: bool) -> Result<(), Errno> {
        self.file(node)?.write(from, offset)
    }

    fn allocate(&self, node: NodeId, how: Allocate, offset: u64, bytes: u64) -> Result<(), Errno> {
        let reserve = || self.volume.allocate(node, how, offset, bytes);
        self.file(node)?.allocate(how, offset, bytes, reserve)
    }

    fn seek(&self, node: NodeId, offset: u64, what: Seek) -> Result<u64, Errno> {
        self.file(node)?.seek(offset, what)
    }

    fn mount_begins(&self, keeps_pages: bool) -> Result<(), Errno> {
        self.volume.mount_begins(keeps_pages)
    }

    fn mount_keeps_pages(&self) -> Option<bool> {
        self.volume.mount_keeps_pages()
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
