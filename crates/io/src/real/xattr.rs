//! Extended attributes by a path that leads to one inode.
//!
//! The kernel's calls take no descriptor that only stands for an inode (before Linux 6.13), so it
//! is reached through its entry among this process's descriptors.
//!
//! Promise: what that entry stands for is not followed, if it is a symbolic link.
//! Never: tells an attribute that is missing from one that cannot be had as one case.

use rustix::fs::{
    XattrFlags, getxattr, getxattr_query, listxattr, listxattr_query, removexattr, setxattr,
};
use rustix::io::{Errno, Result};

pub(super) fn value(path: &str, name: &[u8]) -> Result<Option<Vec<u8>>> {
    let read = whole(|| getxattr_query(path, name), |into| getxattr(path, name, into));
    match read {
        Err(Errno::NODATA) => Ok(None),
        read => read.map(Some),
    }
}

pub(super) fn names(path: &str) -> Result<Vec<Vec<u8>>> {
    let list = whole(|| listxattr_query(path), |into| listxattr(path, into))?;
    let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(<[u8]>::to_vec).collect())
}

pub(super) fn set(path: &str, name: &[u8], value: &[u8]) -> Result<()> {
    setxattr(path, name, value, XattrFlags::empty())
}

pub(super) fn remove(path: &str, name: &[u8]) -> Result<()> {
    match removexattr(path, name) {
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
