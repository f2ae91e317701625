//! Paths below a home, as the file system calls take them.
//!
//! Promise: bytes of a path come through as they are, whether or not they are text.
//! Never: knows which names a volume has.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A path as the file system calls take it.
pub(crate) fn to_path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&bytes))
}
