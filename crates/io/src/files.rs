//! Files below one root directory.
//!
//! Promise: every operation that Holdfast performs on a file system is a method of [`Files`] or
//! [`OpenFile`], so a test can stop, fail or tear any of them.
//! Never: follows a symbolic link, leaves its root, retries, or hides a short transfer.
//!
//! Paths are relative to the root and use `/`; the empty path names the root itself.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An ordinary file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A unix socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

/// What `lstat` tells. Times are nanoseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
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
    /// Inode number on the file system below.
    pub inode: u64,
    /// The device that counts `inode`: two inodes are one if both numbers agree.
    pub device: u64,
    /// Nothing about it may be changed, whoever asks.
    pub immutable: bool,
    /// Contents and names are encrypted, and cannot be changed once its owner takes the key away.
    pub encrypted: bool,
    /// Nothing may be done to it but to append.
    pub append_only: bool,
    /// Device number, for device files.
    pub rdev: u64,
    /// Last access.
    pub accessed_ns: i128,
    /// Last change of the contents.
    pub modified_ns: i128,
    /// Last change of the inode.
    pub changed_ns: i128,
}

/// One name in a directory. `.` and `..` are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, as bytes.
    pub name: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Inode number on the file system below.
    pub inode: u64,
}

/// What `statfs` tells, in bytes and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Size of the file system.
    pub total_bytes: u64,
    /// Free for anybody.
    pub free_bytes: u64,
    /// Free for an ordinary user.
    pub available_bytes: u64,
    /// Inodes in all.
    pub total_inodes: u64,
    /// Inodes free.
    pub free_inodes: u64,
    /// Longest name, in bytes.
    pub name_bytes_max: u32,
    /// Preferred transfer size.
    pub block_bytes: u32,
    /// What files and directories are given room in: blocks, or clusters of them.
    pub room_unit_bytes: u64,
    /// Nothing may be changed, as the file system is mounted now.
    pub read_only: bool,
}

/// What one file of a file system can be at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file.
    pub file_bytes_max: u64,
    /// Names of a file.
    pub links_max: u32,
    /// Each name of a file but the first takes one of the inodes that there are, as on tmpfs.
    pub links_take_inodes: bool,
    /// An extended attribute takes one of the inodes that there are for each so many bytes of it,
    /// and one for the rest. `None` if it takes none.
    pub xattr_inode_bytes: Option<u64>,
}

impl Limits {
    /// What is thought of a file system that cannot be asked: it takes as many inodes as any.
    pub const UNKNOWN: Limits = Limits {
        file_bytes_max: i64::MAX as u64,
        links_max: 1,
        links_take_inodes: true,
        xattr_inode_bytes: Some(TMPFS_XATTR_INODE_BYTES),
    };

    /// What an extended attribute takes of the inodes, at most.
    pub fn xattr_inodes(&self, name: &[u8], value: &[u8]) -> u64 {
        let bytes = XATTR_HEAD_BYTES + (name.len() + value.len()) as u64;
        self.xattr_inode_bytes.map_or(0, |each| bytes.div_ceil(each))
    }
}

/// What the files of a home do with room when they are asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// A range can be given room before it is written ([`OpenFile::reserve`]).
    pub reserves: bool,
    /// A range that is punched loses its room ([`OpenFile::punch`]). Where it does not, there is no
    /// such call, or the range keeps its room, as a device's does.
    pub gives_back: bool,
}

impl Allocation {
    /// What the kernel's own file systems do.
    pub const ALL: Allocation = Allocation { reserves: true, gives_back: true };
}

/// What the number of an inode is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InodeNumbers {
    /// An inode keeps its number for as long as there is one. This is the file system's own, and a
    /// copy of it has it too.
    Kept(u64),
    /// What is no directory keeps it until it is changed for the first time.
    KeptUntilChanged,
    /// One inode may have several in turn.
    NotKept,
}

/// What an inode hands down to what is made in it, besides its permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Whose quota it counts for.
    pub project: u32,
    /// What is made in it is of that project, and nothing of another is let in.
    pub hands_project_down: bool,
    /// No symbolic links are made in it.
    pub no_symlinks: bool,
    /// Names in it that differ in case alone are one.
    pub folds_case: bool,
}

/// What to look for in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// Bytes that were written.
    Data,
    /// A stretch without them; there is one behind every file's end.
    Hole,
}

/// How to open a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenHow {
    /// Writes are allowed.
    pub write: bool,
    /// Create it, with these permission bits, if it is missing.
    pub create_mode: Option<u32>,
    /// Fail with `AlreadyExists` if it exists (with `create_mode`).
    pub exclusive: bool,
    /// Bypass the page cache where the file system can; transfers are aligned to 4096 bytes.
    /// A file system that cannot is used through its page cache.
    pub direct: bool,
}

/// A change of metadata; `None` leaves a field alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Last access, nanoseconds since 1970.
    pub accessed_ns: Option<i128>,
    /// Last change of the contents, nanoseconds since 1970.
    pub modified_ns: Option<i128>,
}

/// Operations on the names below one root.
pub trait Files: Send + Sync {
    /// Opens an ordinary file.
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn OpenFile>>;
    /// Takes hold of what the name itself refers to, without opening it.
    fn hold(&self, path: &Path) -> io::Result<Box<dyn Held>>;
    /// Describes what the name itself refers to (`lstat`).
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// Lists a directory, in no particular order, without `.` and `..`.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// The target of a symbolic link.
    fn read_link(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Makes a directory, pipe, socket, device or empty file with exactly these permission bits (no
    /// umask), and takes hold of it: of nothing else that the name has come to lead to.
    fn make(&self, path: &Path, kind: Kind, mode: u32, rdev: u64) -> io::Result<Box<dyn Held>>;
    /// [`Files::make`] of a directory.
    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.make(path, Kind::Directory, mode, 0).map(drop)
    }
    /// [`Files::make`] for who does not go on with it.
    fn make_node(&self, path: &Path, kind: Kind, mode: u32, rdev: u64) -> io::Result<()> {
        self.make(path, kind, mode, rdev).map(drop)
    }
    /// Makes a symbolic link at `path`.
    fn make_symlink(&self, path: &Path, target: &[u8]) -> io::Result<()>;
    /// Gives `from` a second name.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames, replacing `to` if it exists.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Swaps two names (`RENAME_EXCHANGE`).
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()>;
    /// Removes a name that is not a directory.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Changes metadata of what the name itself refers to.
    fn change(&self, path: &Path, change: &Change) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Free and total space. May try out, on a file without a name, what room is given in.
    fn space(&self) -> io::Result<Space>;
    /// What a file can be at most. May try it out on a file without a name.
    fn limits(&self) -> io::Result<Limits>;
    /// What files do with room. May try it out on a file without a name.
    fn allocation(&self) -> io::Result<Allocation>;
    /// Whether a write takes no new room where there is some. Where it is not known to take any, it
    /// is said to take none.
    fn writes_in_place(&self) -> bool;

    // The methods with a body do what is right for a root whose files have no extended attributes.

    /// An extended attribute of what the name itself refers to, if it has one of that name.
    fn xattr(&self, _path: &Path, _name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Err(Errno::OPNOTSUPP.into())
    }
    /// The names of all extended attributes of what the name itself refers to.
    fn xattr_names(&self, _path: &Path) -> io::Result<Vec<Vec<u8>>> {
        Err(Errno::OPNOTSUPP.into())
    }
    /// Gives what the name itself refers to an extended attribute, or another value for it.
    fn set_xattr(&self, _path: &Path, _name: &[u8], _value: &[u8]) -> io::Result<()> {
        Err(Errno::OPNOTSUPP.into())
    }
    /// Takes an extended attribute away, if what the name itself refers to has it.
    fn remove_xattr(&self, _path: &Path, _name: &[u8]) -> io::Result<()> {
        Err(Errno::OPNOTSUPP.into())
    }
    /// Makes everything below the root durable, extended attributes included: those of a file may
    /// be left out by [`OpenFile::sync_data`], and what is neither file nor directory has no sync.
    fn sync_all(&self) -> io::Result<()> {
        Err(Errno::OPNOTSUPP.into())
    }
    /// Notes that everything of a log up to there is below this root, if anything is noted of it:
    /// whether that is so. It is durable once the root is synced.
    fn note_came_home(&self, _log_position: u64) -> io::Result<bool> {
        Ok(false)
    }
    /// Whether [`Files::sync_all`] keeps its promise here. The kernel asks the servers of some file
    /// systems, those of FUSE among them, for no such thing, and says that it is done.
    fn has_sync_all(&self) -> bool {
        true
    }
    /// How many files this process may have open.
    fn open_max(&self) -> usize {
        1024
    }
    /// Returns once the file system takes changes, if somebody has frozen it (`fsfreeze`). It may
    /// be frozen anew a moment later.
    fn wait_while_frozen(&self) {}
    /// What the numbers in [`Metadata`] are good for.
    fn inode_numbers(&self) -> InodeNumbers {
        InodeNumbers::Kept(0)
    }
}

/// What a name referred to when somebody took hold of it, whatever stands under the name by now.
///
/// The methods with a body do what is right for an ordinary file without extended attributes.
pub trait Held: Send + Sync {
    /// Describes it.
    fn metadata(&self) -> io::Result<Metadata>;
    /// Opens it, if it is an ordinary file. Waits for nobody: where somebody has a lease, that is
    /// `WouldBlock`.
    fn open(&self, write: bool) -> io::Result<Arc<dyn OpenFile>>;
    /// Changes its metadata.
    fn change(&self, change: &Change) -> io::Result<()>;
    /// What it hands down. `None` if it cannot be asked, as what is neither file nor directory.
    fn traits(&self) -> io::Result<Option<Traits>> {
        Ok(Some(Traits::default()))
    }
    /// Lets it hand no project down, if it is a directory.
    fn hand_no_project_down(&self) -> io::Result<()> {
        Ok(())
    }
    /// Lists it, if it is a directory, in no particular order, without `.` and `..`.
    fn read_dir(&self) -> io::Result<Vec<DirEntry>> {
        Err(Errno::NOTDIR.into())
    }
    /// Its target, if it is a symbolic link.
    fn read_link(&self) -> io::Result<Vec<u8>> {
        Err(Errno::INVAL.into())
    }
    /// Makes the names in it durable, if it is a directory.
    fn sync_dir(&self) -> io::Result<()>;
    /// An extended attribute, if it has one of that name.
    fn xattr(&self, _name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Err(Errno::OPNOTSUPP.into())
    }
    /// The names of all extended attributes.
    fn xattr_names(&self) -> io::Result<Vec<Vec<u8>>> {
        Err(Errno::OPNOTSUPP.into())
    }
    /// Gives it an extended attribute, or another value for it.
    fn set_xattr(&self, _name: &[u8], _value: &[u8]) -> io::Result<()> {
        Err(Errno::OPNOTSUPP.into())
    }
    /// Takes an extended attribute away, if it has it.
    fn remove_xattr(&self, _name: &[u8]) -> io::Result<()> {
        Err(Errno::OPNOTSUPP.into())
    }
}

/// What a tmpfs counts as one inode of what extended attributes take.
pub(crate) const TMPFS_XATTR_INODE_BYTES: u64 = 1024;
/// What a file system keeps of an extended attribute besides its name and value, if it keeps it in
/// memory: 41 bytes, and some to spare.
const XATTR_HEAD_BYTES: u64 = 64;
/// Longest name of an extended attribute, and longest value.
pub const XATTR_NAME_BYTES_MAX: usize = 255;
/// See [`XATTR_NAME_BYTES_MAX`].
pub const XATTR_VALUE_BYTES_MAX: usize = 64 << 10;

/// Operations on one open ordinary file. All may be called from several threads.
pub trait OpenFile: Send + Sync {
    /// Reads at an offset; fewer bytes than asked means end of file or a short read.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at an offset; may write fewer bytes than given.
    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes contents, size, owner and mode durable; times may lag behind.
    fn sync_data(&self) -> io::Result<()>;
    /// [`OpenFile::sync_data`], with everything else that is known of the file.
    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
    /// Writes at an offset, and makes that durable, and nothing else: cheaper than a write and a
    /// sync where the system has a call for it. May write fewer bytes than given.
    fn write_through_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        let bytes = self.write_at(from, offset)?;
        self.sync_data()?;
        Ok(bytes)
    }
    /// Truncates or extends with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Reserves space without changing the size.
    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()>;
    /// Makes a range read as zeros without changing the size.
    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()>;
    /// Makes a range read as zeros and have room, without writing them and without changing the
    /// size. Room that it has is kept where the system has a call for that.
    fn zero(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.punch(offset, bytes)?;
        self.reserve(offset, bytes)
    }
    /// Where the next data or hole begins, at `offset` or behind it; `None` if there is no more
    /// data, or the file ends before `offset`.
    fn seek(&self, offset: u64, what: Seek) -> io::Result<Option<u64>>;
    /// False if nothing at `offset` and behind it has room, neither data nor what is reserved, and
    /// the system says so.
    fn may_have_room_behind(&self, _offset: u64) -> io::Result<bool> {
        Ok(true)
    }
    /// Describes the open file.
    fn metadata(&self) -> io::Result<Metadata>;
    /// Changes metadata of the open file.
    fn change(&self, change: &Change) -> io::Result<()>;
    /// Free and total space where the file is. What room is given in there is not tried.
    fn space(&self) -> io::Result<Space>;
    /// What the file does with room, as its file system is known to; one that is not known does
    /// nothing. It is not tried on the file: that would change its times.
    fn allocation(&self) -> io::Result<Allocation>;
    /// As [`Files::writes_in_place`], of this file.
    fn writes_in_place(&self) -> bool;

    /// Reads until `into` is full or the file ends; interrupted calls are repeated.
    /// Returns the number of bytes read.
    fn read_full_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Writes all of `from`; short writes are continued, interrupted calls are repeated.
    fn write_all_at(&self, from: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < from.len() {
            match self.write_at(&from[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
