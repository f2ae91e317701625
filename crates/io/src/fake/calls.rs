//! The calls that programs make to a fake disk.
//!
//! Promise: each behaves as that of [`crate::real::RealFiles`] does, until a test asks for trouble.
//! Never: decides what becomes of what no sync has covered.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::Hindrance;
use super::faults::Operation;
use super::files::FakeFiles;
use super::machine::Machine;
use super::open_file::FakeFile;
use super::turn::{Outcome, Turn};
use crate::{
    Allocation, Change, DirEntry, Files, Held, Kind, Limits, Metadata, OpenFile, OpenHow, Space,
};

/// Finds or creates the file to open.
fn open_or_create(machine: &mut Machine, turn: Turn, path: &Path, how: OpenHow) -> Outcome<u64> {
    let existing = machine.lookup(path);
    let number = match (existing, how.create_mode) {
        (Ok(_), Some(_)) if how.exclusive => return Err(Errno::EXIST),
        (Err(Errno::NOENT), Some(mode)) => machine.make(turn.number, path, Kind::File, mode)?,
        (existing, _) => existing?,
    };
    match machine.inode(number).kind {
        Kind::File => {}
        Kind::Directory => return Err(Errno::ISDIR),
        Kind::Symlink => return Err(Errno::LOOP),
        Kind::Socket => return Err(Errno::NXIO),
        Kind::Fifo | Kind::CharDevice | Kind::BlockDevice => return Err(Errno::INVAL),
    }
    let inode = machine.inode_mut(number);
    if how.write && (inode.immutable || inode.append_only) {
        return Err(Errno::PERM);
    }
    match inode.hindered {
        Some(Hindrance::Runs) if how.write => return Err(Errno::TXTBSY),
        Some(Hindrance::Leases) => return Err(Errno::AGAIN),
        _ => {}
    }
    inode.opens += 1;
    inode.writers += u32::from(how.write);
    Ok(number)
}

impl Files for FakeFiles {
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn OpenFile>> {
        let number =
            self.call_counted(Operation::Open, how.create_mode.is_some(), |machine, turn| {
                open_or_create(machine, turn, path, how)
            })?;
        Ok(Arc::new(FakeFile::new(self.clone(), number, how)))
    }

    fn hold(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        let root = self.here().lookup(path)?;
        Ok(Box::new(FakeHeld(FakeFiles { machine: Arc::clone(&self.machine), root })))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.call(Operation::Metadata, |machine, _| Ok(machine.metadata(machine.lookup(path)?)))
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.call(Operation::ReadDir, |machine, _| {
            let dir = machine.inode(machine.directory(path)?);
            let entry = |(name, &inode): (&Vec<u8>, &u64)| DirEntry {
                name: name.clone(),
                kind: machine.inode(inode).kind,
                inode,
            };
            let mut entries: Vec<DirEntry> = dir.names.iter().map(entry).collect();
            // Nobody may count on an order.
            for last in (1..entries.len()).rev() {
                entries.swap(last, machine.random.below(last as u64 + 1) as usize);
            }
            Ok(entries)
        })
    }

    fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.call(Operation::ReadLink, |machine, _| {
            let inode = machine.inode(machine.lookup(path)?);
            match inode.kind {
                Kind::Symlink => Ok(inode.target.clone()),
                _ => Err(Errno::INVAL),
            }
        })
    }

    fn make(&self, path: &Path, kind: Kind, mode: u32, rdev: u64) -> io::Result<Box<dyn Held>> {
        match kind {
            Kind::Directory => self.call(Operation::MakeDir, |machine, turn| {
                machine.make(turn.number, path, Kind::Directory, mode).map(|_| ())
            }),
            kind => self.call(Operation::MakeNode, |machine, turn| {
                machine.make_node(turn.number, path, kind, mode, rdev)
            }),
        }?;
        self.hold(path)
    }

    fn make_symlink(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        self.call(Operation::MakeSymlink, |machine, turn| {
            machine.make_symlink(turn.number, path, target)
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Operation::Link, |machine, turn| machine.link(turn.number, from, to))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Operation::Rename, |machine, turn| machine.rename(turn.number, from, to))
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.call(Operation::Exchange, |machine, turn| machine.exchange(turn.number, one, other))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.call(Operation::RemoveFile, |machine, turn| machine.remove_file(turn.number, path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.call(Operation::RemoveDir, |machine, turn| machine.remove_dir(turn.number, path))
    }

    fn change(&self, path: &Path, change: &Change) -> io::Result<()> {
        self.call(Operation::Change, |machine, turn| {
            let number = machine.lookup(path)?;
            machine.change(turn.number, number, change)
        })
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.call(Operation::SyncDir, |machine, turn| {
            let number = machine.directory(path)?;
            if !turn.cut {
                machine.sync_dir(number);
            }
            Ok(())
        })
    }

    fn space(&self) -> io::Result<Space> {
        self.call(Operation::Space, |machine, _| Ok(machine.space()))
    }

    fn xattr(&self, path: &Path, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.call(Operation::Xattr, |machine, _| machine.xattr(machine.lookup(path)?, name))
    }

    fn xattr_names(&self, path: &Path) -> io::Result<Vec<Vec<u8>>> {
        self.call(Operation::Xattr, |machine, _| Ok(machine.xattr_names(machine.lookup(path)?)))
    }

    fn set_xattr(&self, path: &Path, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.call(Operation::SetXattr, |machine, turn| {
            let number = machine.lookup(path)?;
            machine.set_xattr(turn.number, number, name, value)
        })
    }

    fn remove_xattr(&self, path: &Path, name: &[u8]) -> io::Result<()> {
        self.call(Operation::RemoveXattr, |machine, turn| {
            let number = machine.lookup(path)?;
            machine.remove_xattr(turn.number, number, name)
        })
    }

    fn sync_all(&self) -> io::Result<()> {
        self.call(Operation::SyncAll, |machine, turn| {
            if !turn.cut && machine.limits.syncs_all {
                machine.sync_all();
            }
            Ok(())
        })
    }

    fn has_sync_all(&self) -> bool {
        self.lock().limits.syncs_all
    }

    fn limits(&self) -> io::Result<Limits> {
        self.call(Operation::Limits, |machine, _| Ok(machine.limits.limits))
    }

    fn allocation(&self) -> io::Result<Allocation> {
        self.call(Operation::Limits, |machine, _| Ok(machine.limits.allocation))
    }

    fn writes_in_place(&self) -> bool {
        self.lock().limits.writes_in_place
    }
}

/// The inode that a handle's empty path names; it may be any.
struct FakeHeld(FakeFiles);

impl Held for FakeHeld {
    fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata(Path::new(""))
    }

    fn open(&self, write: bool) -> io::Result<Arc<dyn OpenFile>> {
        self.0.open(Path::new(""), OpenHow { write, ..OpenHow::default() })
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        self.0.change(Path::new(""), change)
    }

    fn read_dir(&self) -> io::Result<Vec<DirEntry>> {
        self.0.read_dir(Path::new(""))
    }

    fn read_link(&self) -> io::Result<Vec<u8>> {
        self.0.read_link(Path::new(""))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.0.sync_dir(Path::new(""))
    }

    fn xattr(&self, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.0.xattr(Path::new(""), name)
    }

    fn xattr_names(&self) -> io::Result<Vec<Vec<u8>>> {
        self.0.xattr_names(Path::new(""))
    }

    fn set_xattr(&self, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.0.set_xattr(Path::new(""), name, value)
    }

    fn remove_xattr(&self, name: &[u8]) -> io::Result<()> {
        self.0.remove_xattr(Path::new(""), name)
    }
}
