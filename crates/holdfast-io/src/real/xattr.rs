//! Extended attributes by name.
//!
//! The kernel's calls take a path and no directory (before Linux 6.13), so a name is reached
//! through the directory's entry among this process's descriptors.
//!
//! Promise: the last name is not followed if it is a symbolic link, and none before it is.
//! Never: tells an attribute that is missing from one that cannot be had as one case.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    XattrFlags, lgetxattr, lgetxattr_query, llistxattr, llistxattr_query, lremovexattr, lsetxattr,
};
use rustix::io::{Errno, Result};

/// A path that names `last` in `dir` for as long as the descriptor is open.
pub(super) fn through(dir: BorrowedFd<'_>, last: &Path) -> PathBuf {
    Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(last)
}

pub(super) fn value(path: &Path, name: &[u8]) -> Result<Option<Vec<u8>>> {
    let read = whole(|| lgetxattr_query(path, name), |into| lgetxattr(path, name, into));
    match read {
        Err(Errno::NODATA) => Ok(None),
        read => read.map(Some),
    }
}

pub(super) fn names(path: &Path) -> Result<Vec<Vec<u8>>> {
    let list = whole(|| llistxattr_query(path), |into| llistxattr(path, into))?;
    let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(<[u8]>::to_vec).collect())
}

pub(super) fn set(path: &Path, name: &[u8], value: &[u8]) -> Result<()> {
    lsetxattr(path, name, value, XattrFlags::empty())
}

pub(super) fn remove(path: &Path, name: &[u8]) -> Result<()> {
    match lremovexattr(path, name) {
        Err(Errno::NODATA) => Ok(()),
        removed => removed,
    }
}

/// Asks how much there is, then for it, again if it grew in between.
fn whole(
    ask: impl Fn() -> Result<usize>,
    read: impl Fn(&mut [u8]) -> Result<usize>,
) -> Result<Vec<u8>> {
    loop {
        let mut bytes = vec![0; ask()?];
        match read(&mut bytes) {
            Err(Errno::RANGE) => {}
            Ok(length) => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            Err(error) => return Err(error),
        }
    }
}
