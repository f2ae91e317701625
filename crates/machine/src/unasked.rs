//! What is behind a link of `/proc`, as the kernel remembers it.
//!
//! Promise: no file system is asked, so one that never answers keeps nobody waiting.
//! Never: tells what a file system may have changed since, such as a size.

use rustix::fs::{AtFlags, CWD, Dev, Statx, StatxFlags, makedev, statx};
use std::path::Path;

/// Kind, device and inode of what the link leads to, and the number of the mount that it is on.
pub fn behind(link: &Path) -> Option<Statx> {
    let what = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID;
    statx(CWD, link, AtFlags::STATX_DONT_SYNC, what).ok()
}

/// The device that it is on.
pub fn device_of(seen: &Statx) -> Dev {
    makedev(seen.stx_dev_major, seen.stx_dev_minor)
}
