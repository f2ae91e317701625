//! The volume as a [`Tree`].
//!
//! Promise: each method is one line that names who does the work.
//! Never: does the work.

use std::time::Duration;

use crate::volume::{Class, DirectoryVolume};
use holdfast_io::tree::{
    Allocate, Asked, Attributes, Errno, Listed, NewNode, NodeId, RenameHow, Seek, SetAttributes,
    SetXattr, Space, Tree,
};

/// The home belongs to the volume alone while it is mounted, so what was told stays true until the
/// kernel itself changes it.
const REMEMBER: Duration = Duration::from_secs(3600);

impl Tree for DirectoryVolume {
    fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        self.find(parent, name)
    }

    fn forget(&self, node: NodeId, count: u64) {
        self.forget_node(node, count);
    }

    fn attributes(&self, node: NodeId) -> Result<Attributes, Errno> {
        self.attributes_of(node)
    }

    fn set_attributes(&self, node: NodeId, set: &SetAttributes) -> Result<Attributes, Errno> {
        self.set_attributes_of(node, set)
    }

    fn read_link(&self, node: NodeId) -> Result<Vec<u8>, Errno> {
        self.target_of(node)
    }

    fn make(&self, parent: NodeId, name: &[u8], new: &NewNode<'_>) -> Result<Attributes, Errno> {
        self.make_node(parent, name, new)
    }

    fn make_unnamed(&self, directory: NodeId, new: &NewNode<'_>) -> Result<Attributes, Errno> {
        self.make_unnamed_node(directory, new)
    }

    fn link(&self, node: NodeId, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        self.link_node(node, parent, name)
    }

    fn remove_file(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.remove_name(parent, name)
    }

    fn remove_dir(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.remove_directory(parent, name)
    }

    fn rename(
        &self,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
        how: RenameHow,
    ) -> Result<(), Errno> {
        self.rename_node(from, to, how)
    }

    fn counts_opens(&self) -> bool {
        false
    }

    fn mount_begins(&self, keeps_pages: bool) -> Result<(), Errno> {
        self.note_pages(keeps_pages)
    }

    fn mount_keeps_pages(&self) -> Option<bool> {
        self.pages_noted()
    }

    fn read(&self, node: NodeId, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        self.read_bytes(node, into, offset)
    }

    fn write(
        &self,
        node: NodeId,
        from: &[u8],
        offset: u64,
        clear_privileges: bool,
    ) -> Result<(), Errno> {
        self.write_bytes(node, from, offset, clear_privileges)
    }

    fn allocate(&self, node: NodeId, how: Allocate, offset: u64, bytes: u64) -> Result<(), Errno> {
        self.allocate_range(node, how, offset, bytes)
    }

    fn seek(&self, node: NodeId, offset: u64, what: Seek) -> Result<u64, Errno> {
        self.seek_in(node, offset, what)
    }

    fn sync(&self, _node: NodeId) -> Result<(), Errno> {
        match self.class {
            Class::Memory => Ok(()),
            // What comes before is in the log already: whoever takes the lease back brings it all
            // to the device before saying so.
            Class::Disk if self.holds_lease() => Ok(()),
            Class::Disk => self.log.commit(self.log.marks().tail).map_err(|_| Errno::IO),
        }
    }

    fn sync_is_needed(&self) -> bool {
        self.class == Class::Disk
    }

    fn list(
        &self,
        directory: NodeId,
        cookie: u64,
        sink: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<(), Errno> {
        self.list_names(directory, cookie, sink)
    }

    fn xattr(&self, node: NodeId, name: &[u8]) -> Result<Vec<u8>, Errno> {
        self.xattr_of(node, name)
    }

    fn xattr_names(&self, node: NodeId) -> Result<Vec<Box<[u8]>>, Errno> {
        self.xattr_names_of(node)
    }

    fn set_xattr(
        &self,
        node: NodeId,
        name: &[u8],
        value: &[u8],
        how: &SetXattr,
    ) -> Result<(), Errno> {
        self.set_xattr_of(node, name, value, how)
    }

    fn remove_xattr(&self, node: NodeId, name: &[u8], asked: Asked) -> Result<(), Errno> {
        self.remove_xattr_of(node, name, asked)
    }

    fn space(&self) -> Result<Space, Errno> {
        self.space_left()
    }

    fn wait_until_later(&self, patience: Duration) {
        DirectoryVolume::wait_until_later(self, patience);
    }

    fn remember_for(&self) -> Duration {
        REMEMBER
    }
}
