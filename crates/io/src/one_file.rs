//! One open file as all there is below a root.
//!
//! Promise: the root has one name, [`OneFile::NAME`], which is the file, and never another:
//! whatever would make, move or remove a name is refused (`EPERM`).
//! Never: opens the file again, so a path that comes to mean something else changes nothing.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use crate::path::{check, check_both};
use crate::{
    Allocation, Change, DirEntry, Files, Held, InodeNumbers, Kind, Limits, Metadata, OpenFile,
    OpenHow, Space,
};

/// The number of the root's inode. It is no file system's, so the file below has another.
const ROOT_INODE: u64 = u64::MAX;

/// A root with one file in it, for those who keep a whole directory otherwise.
pub struct OneFile {
    file: Arc<dyn OpenFile>,
}

/// What a path below the root names.
#[derive(Clone, Copy)]
enum Named {
    Root,
    File,
}

impl OneFile {
    /// What the file is called here, whatever it is called elsewhere.
    pub const NAME: &str = "disk";

    /// A root with this file.
    pub fn new(file: Arc<dyn OpenFile>) -> OneFile {
        OneFile { file }
    }

    /// A root with the ordinary file that `path` names below another root.
    ///
    /// # Errors
    /// Those of [`Files::open`], for writing.
    pub fn open(below: &dyn Files, path: &Path) -> io::Result<OneFile> {
        let how = OpenHow { write: true, ..OpenHow::default() };
        Ok(OneFile::new(below.open(path, how)?))
    }

    fn find(path: &Path) -> io::Result<Named> {
        check(path)?;
        match path.strip_prefix(OneFile::NAME) {
            _ if path.as_os_str().is_empty() => Ok(Named::Root),
            Ok(rest) if rest.as_os_str().is_empty() => Ok(Named::File),
            Ok(_) => Err(Errno::NOTDIR.into()),
            Err(_) => Err(Errno::NOENT.into()),
        }
    }
}

/// No name comes or goes.
fn refuse(path: &Path) -> io::Result<()> {
    check(path)?;
    Err(Errno::PERM.into())
}

/// [`refuse`] for two names.
fn refuse_both(one: &Path, other: &Path) -> io::Result<()> {
    check_both(one, other)?;
    Err(Errno::PERM.into())
}

impl Files for OneFile {
    /// The one file, as it was opened: `direct` is not looked at.
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn OpenFile>> {
        match OneFile::find(path) {
            Ok(Named::File) if how.create_mode.is_some() && how.exclusive => {
                Err(Errno::EXIST.into())
            }
            Ok(Named::File) => Ok(self.file.clone()),
            Ok(Named::Root) => Err(Errno::ISDIR.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && how.create_mode.is_some() => {
                Err(Errno::PERM.into())
            }
            Err(error) => Err(error),
        }
    }

    fn hold(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        Ok(Box::new(OneHeld { file: self.file.clone(), named: OneFile::find(path)? }))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.hold(path)?.metadata()
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.hold(path)?.read_dir()
    }

    fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        OneFile::find(path)?;
        Err(Errno::INVAL.into())
    }

    fn make(&self, path: &Path, _: Kind, _mode: u32, _rdev: u64) -> io::Result<Box<dyn Held>> {
        check(path)?;
        Err(Errno::PERM.into())
    }

    fn make_symlink(&self, path: &Path, _target: &[u8]) -> io::Result<()> {
        refuse(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        refuse_both(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        refuse_both(from, to)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        refuse_both(one, other)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        refuse(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        refuse(path)
    }

    fn change(&self, path: &Path, change: &Change) -> io::Result<()> {
        self.hold(path)?.change(change)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.hold(path)?.sync_dir()
    }

    fn space(&self) -> io::Result<Space> {
        self.file.space()
    }

    /// There is one file, and nothing to take it for.
    fn inode_numbers(&self) -> InodeNumbers {
        InodeNumbers::NotKept
    }

    /// The one file is as large as it is, and whoever resizes it hears at once what is too much.
    fn limits(&self) -> io::Result<Limits> {
        Ok(Limits {
            file_bytes_max: i64::MAX as u64,
            links_max: 1,
            links_take_inodes: false,
            xattr_inode_bytes: None,
        })
    }

    fn allocation(&self) -> io::Result<Allocation> {
        self.file.allocation()
    }

    fn writes_in_place(&self) -> bool {
        self.file.writes_in_place()
    }
}

/// The root, or the file.
struct OneHeld {
    file: Arc<dyn OpenFile>,
    named: Named,
}

impl Held for OneHeld {
    /// The root belongs to whom the file belongs to.
    fn metadata(&self) -> io::Result<Metadata> {
        let file = self.file.metadata()?;
        Ok(match self.named {
            Named::File => file,
            Named::Root => Metadata {
                kind: Kind::Directory,
                mode: 0o755,
                size_bytes: 0,
                allocated_bytes: 0,
                links: 2,
                inode: ROOT_INODE,
                rdev: 0,
                ..file
            },
        })
    }

    fn open(&self, _write: bool) -> io::Result<Arc<dyn OpenFile>> {
        match self.named {
            Named::File => Ok(self.file.clone()),
            Named::Root => Err(Errno::ISDIR.into()),
        }
    }

    /// Of the file; the root is what the file makes it.
    fn change(&self, change: &Change) -> io::Result<()> {
        match self.named {
            Named::File => self.file.change(change),
            Named::Root => Err(Errno::PERM.into()),
        }
    }

    /// The names are as durable as can be: they never change.
    fn sync_dir(&self) -> io::Result<()> {
        match self.named {
            Named::Root => Ok(()),
            Named::File => Err(Errno::NOTDIR.into()),
        }
    }

    fn read_dir(&self) -> io::Result<Vec<DirEntry>> {
        match self.named {
            Named::Root => {
                let Metadata { kind, inode, .. } = self.file.metadata()?;
                Ok(vec![DirEntry { name: OneFile::NAME.into(), kind, inode }])
            }
            Named::File => Err(Errno::NOTDIR.into()),
        }
    }
}
