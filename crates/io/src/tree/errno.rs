//! Error numbers.
//!
//! Promise: the numbers of Linux, by name, and the number behind an I/O error.
//! Never: interprets one.

use std::fmt;
use std::io;

use crate::{BlocksError, errno};

impl Errno {
    /// The name must not be changed.
    pub const PERM: Errno = Errno(1);
    /// No such name or node.
    pub const NOENT: Errno = Errno(2);
    /// The log or the home failed.
    pub const IO: Errno = Errno(5);
    /// Nothing is there, or behind it.
    pub const NXIO: Errno = Errno(6);
    /// More than the kernel hands on.
    pub const TOOBIG: Errno = Errno(7);
    /// Not for this kind of node.
    pub const ACCESS: Errno = Errno(13);
    /// The name is taken.
    pub const EXIST: Errno = Errno(17);
    /// Not from there to here.
    pub const XDEV: Errno = Errno(18);
    /// Not a directory.
    pub const NOTDIR: Errno = Errno(20);
    /// A directory.
    pub const ISDIR: Errno = Errno(21);
    /// The arguments make no sense.
    pub const INVAL: Errno = Errno(22);
    /// The file would be too large.
    pub const FBIG: Errno = Errno(27);
    /// No room on the home.
    pub const NOSPC: Errno = Errno(28);
    /// The home is read-only.
    pub const ROFS: Errno = Errno(30);
    /// The node has as many names as it can.
    pub const MLINK: Errno = Errno(31);
    /// The answer is longer than there is room for, or the name too long.
    pub const RANGE: Errno = Errno(34);
    /// The path is too long.
    pub const NAMETOOLONG: Errno = Errno(36);
    /// The volume does not do this.
    pub const NOSYS: Errno = Errno(38);
    /// The directory has names in it.
    pub const NOTEMPTY: Errno = Errno(39);
    /// A quota of the home is used up.
    pub const DQUOT: Errno = Errno(122);
    /// There is no such extended attribute.
    pub const NODATA: Errno = Errno(61);
    /// The home does not have such.
    pub const NOTSUP: Errno = Errno(95);
    /// The home has another file there than the volume left.
    pub const UCLEAN: Errno = Errno(117);
    /// The node is unknown.
    pub const STALE: Errno = Errno(116);
}

/// An error that the system did not give has a number, too.
impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        match (errno(&error), error.kind()) {
            (Some(number), _) => Errno(number),
            _ if is_other_inode(&error) => Errno::UCLEAN,
            (None, io::ErrorKind::NotFound) => Errno::NOENT,
            (None, io::ErrorKind::StorageFull) => Errno::NOSPC,
            (None, _) => Errno::IO,
        }
    }
}

/// Another inode stands under a name than the volume left there.
#[derive(Debug)]
struct OtherInode;

impl fmt::Display for OtherInode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("somebody has put another file there; put the right one back")
    }
}

impl std::error::Error for OtherInode {}

/// An error that says so.
pub fn other_inode() -> io::Error {
    io::Error::other(OtherInode)
}

/// True of such an error.
pub fn is_other_inode(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<OtherInode>())
}

/// What is behind a disk's end is what a device has no room for.
impl From<BlocksError> for Errno {
    fn from(error: BlocksError) -> Errno {
        match error {
            BlocksError::OutOfRange | BlocksError::NoSpace => Errno::NOSPC,
            BlocksError::Failed(error) => error.into(),
        }
    }
}

/// An error number, as the kernel knows it (`EIO` is 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);
