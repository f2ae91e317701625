//! What has the name of a region.
//!
//! Promise: what is neither a file nor a device is told by what it is, a link too.
//! Never: follows a link.

use std::fs::{File, symlink_metadata};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use holdfast_io::private;

use crate::error::AttachError;

/// Refuses a name that something else has. A link may lead to a region; but whoever claims one by a
/// name holds what has that name, and a link can be made to lead elsewhere.
pub(crate) fn check(path: &Path) -> Result<(), AttachError> {
    // Whoever opens it finds out why it cannot be looked at.
    let Ok(found) = symlink_metadata(path) else { return Ok(()) };
    let kind = found.file_type();
    let what = match kind {
        _ if kind.is_file() || kind.is_char_device() || kind.is_block_device() => return Ok(()),
        _ if kind.is_symlink() => "symbolic link",
        _ if kind.is_dir() => "directory",
        _ if kind.is_fifo() => "pipe",
        _ => "socket",
    };
    Err(AttachError::InTheWay { what })
}

/// Opens what has the name, to be claimed.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    check(path).map_err(io::Error::other)?;
    private::open(path, true)
}
