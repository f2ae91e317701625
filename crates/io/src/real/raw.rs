//! What an inode hands down to what is made in it, as the kernel's two calls tell it.
//!
//! Promise: a file system that has no such thing tells nothing.
//! Never: keeps what it read.

use std::os::fd::AsFd;

use rustix::io::Result;
use rustix::ioctl::{Getter, Setter, ioctl, opcode};

/// `FS_XFLAG_PROJINHERIT`
pub(super) const HANDS_PROJECT_DOWN: u32 = 0x200;
/// `FS_XFLAG_NOSYMLINKS`
pub(super) const NO_SYMLINKS: u32 = 0x400;

/// The kernel's `struct fsxattr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fsxattr {
    pub(super) flags: u32,
    extent_bytes: u32,
    extents: u32,
    pub(super) project: u32,
    copied_extent_bytes: u32,
    reserved: [u8; 8],
}

/// `FS_IOC_FSGETXATTR`
const GET: u32 = opcode::read::<Fsxattr>(b'X', 31);
/// `FS_IOC_FSSETXATTR`
const SET: u32 = opcode::write::<Fsxattr>(b'X', 32);

pub(super) fn get(fd: impl AsFd) -> Result<Fsxattr> {
    // SAFETY: the kernel writes one `struct fsxattr` for this number, any bytes of which are valid.
    unsafe { ioctl(fd, Getter::<GET, Fsxattr>::new()) }
}

pub(super) fn set(fd: impl AsFd, to: Fsxattr) -> Result<()> {
    // SAFETY: the kernel reads one `struct fsxattr` for this number.
    unsafe { ioctl(fd, Setter::<SET, Fsxattr>::new(to)) }
}
