//! The one form of a path below a root.
//!
//! Promise: a path that passes here cannot lead out of its root by its words alone.
//! Never: asks a file system.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

/// Refuses a path that is absolute, ends in `/`, or has an empty, `.` or `..` part. The empty path
/// is the root.
pub(crate) fn check(path: &Path) -> rustix::io::Result<()> {
    let bytes = path.as_os_str().as_bytes();
    let strange = |name: &[u8]| matches!(name, b"" | b"." | b"..");
    if !bytes.is_empty() && bytes.split(|&byte| byte == b'/').any(strange) {
        return Err(Errno::INVAL);
    }
    Ok(())
}

/// Refuses to link, rename or exchange the root (`EBUSY`), and paths that [`check`] refuses.
pub(crate) fn check_both(one: &Path, other: &Path) -> rustix::io::Result<()> {
    if one.as_os_str().is_empty() || other.as_os_str().is_empty() {
        return Err(Errno::BUSY);
    }
    check(one)?;
    check(other)
}
