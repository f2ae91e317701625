//! Who else can change a file or a directory.
//!
//! Promise: the answer comes from what the kernel says of an open file, so that it stays true of
//! that file; an access list that lets others write counts as others writing.
//! Never: opens, or follows, anything.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{FileType, Stat};
use rustix::process::{getegid, geteuid};

/// Where the kernel keeps who may beside owner, group and others.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Why a path is not used: somebody else could have chosen what is there.
#[derive(Debug)]
pub struct Refusal {
    /// The path, or the part of it that is at fault.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} is not used: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for Refusal {}

/// A [`Refusal`] as the error of an operation on files.
pub(super) fn refused(path: &Path, why: impl Into<String>) -> io::Error {
    let refusal = Refusal { path: path.to_owned(), why: why.into() };
    io::Error::new(io::ErrorKind::PermissionDenied, refusal)
}

/// Whether an operation of this module was refused because of somebody else, not by the system.
#[must_use]
pub fn is_refusal(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Refusal>())
}

/// Whether what this user owns is as good as one's own: this user, root, the owner of `/`.
#[must_use]
pub fn is_trusted(uid: u32) -> bool {
    // In a user namespace root may have no number of its own, and own everything all the same.
    static ROOT: OnceLock<u32> = OnceLock::new();
    uid == 0
        || uid == geteuid().as_raw()
        || uid == *ROOT.get_or_init(|| std::fs::metadata("/").map_or(0, |found| found.uid()))
}

/// Whether others may write what this describes: by its mode, or by an access list.
pub(super) fn others_write(fd: BorrowedFd<'_>, found: &Stat) -> bool {
    let group_may = found.st_mode & 0o020 != 0;
    let is_own_group = found.st_gid == 0 || found.st_gid == getegid().as_raw();
    let has_list = || has_access_list(format!("/proc/self/fd/{}", fd.as_raw_fd()).as_ref());
    found.st_mode & 0o002 != 0 || group_may && (!is_own_group || has_list())
}

/// The bits of the group are those of all whom an access list names, where there is one.
#[must_use]
pub fn has_access_list(path: &Path) -> bool {
    rustix::fs::getxattr_query(path, ACCESS_LIST).is_ok_and(|bytes| bytes > 0)
}

/// Refuses a file that is somebody else's, that others may write, or that has a second name. A
/// device is whose the machine's makers say it is.
pub(super) fn check_file(path: &Path, found: &Stat) -> io::Result<()> {
    if !is_trusted(found.st_uid) {
        return Err(refused(path, format!("it belongs to user {}", found.st_uid)));
    }
    if found.st_mode & 0o002 != 0 {
        return Err(refused(path, "everybody may write it"));
    }
    let kind = FileType::from_raw_mode(found.st_mode);
    match kind {
        FileType::RegularFile if found.st_nlink > 1 => Err(refused(path, "it has another name")),
        FileType::RegularFile if found.st_mode & 0o020 != 0 => {
            Err(refused(path, "a group may write it"))
        }
        FileType::RegularFile | FileType::CharacterDevice | FileType::BlockDevice => Ok(()),
        _ => Err(refused(path, "it is neither a file nor a device")),
    }
}
