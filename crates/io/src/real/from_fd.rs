//! Taking over a descriptor that somebody opened.
//!
//! Promise: what cannot be read and written by positions is refused.
//! Never: opens anything.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{FileType, fstat};

use super::device::RealDevice;
use super::open_file::RealFile;
use crate::OpenFile;

/// Takes the ordinary file or the block device that `fd` is open on, as one opened before a path
/// meant something else. A device looks like a file of its size that cannot be resized; its
/// [`crate::Metadata::rdev`] is not zero.
///
/// # Errors
/// `EISDIR` or `EINVAL` for anything else.
pub fn file_from_fd(fd: OwnedFd) -> io::Result<Arc<dyn OpenFile>> {
    match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
        FileType::BlockDevice => Ok(Arc::new(RealDevice::new(RealFile::of(fd))?)),
        _ => Ok(Arc::new(RealFile::new(fd, false)?)),
    }
}
