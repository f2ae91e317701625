//! Paths below a home, as the file system calls take them.
//!
//! Promise: bytes of a path come through as they are, whether or not they are text.
//! Never: knows which names a volume has.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holdfast_io::Files;

/// A path as the file system calls take it.
pub(crate) fn to_path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&bytes))
}

/// Makes a directory of the volume's own. One that is there was left behind by a process that died.
pub(crate) fn make_unless_there(home: &dyn Files, path: &Path) -> io::Result<()> {
    match home.make_dir(path, 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}
