//! What an inode hands down to what is made in it, and whether a file has extents behind an
//! offset, as the kernel's calls tell it.
//!
//! Promise: a file system that has no such thing tells nothing.
//! Never: keeps what it read.

use std::os::fd::AsFd;

use rustix::io::Result;
use rustix::ioctl::{Getter, Setter, Updater, ioctl, opcode};

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

/// The kernel's `struct fiemap`, without room for extents: then they are counted.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Fiemap {
    start: u64,
    bytes: u64,
    flags: u32,
    mapped_extents: u32,
    extents_max: u32,
    reserved: u32,
}

/// `FS_IOC_FIEMAP`
const MAP: u32 = opcode::read_write::<Fiemap>(b'f', 11);

/// How many extents a file has at `offset` and behind it.
pub(super) fn extents_behind(fd: impl AsFd, offset: u64) -> Result<u32> {
    let mut map = Fiemap { start: offset, bytes: u64::MAX - offset, ..Fiemap::default() };
    // SAFETY: the kernel reads and writes one `struct fiemap` for this number, and no extents
    // behind it where there is room for none.
    unsafe { ioctl(fd, Updater::<MAP, Fiemap>::new(&mut map))? };
    Ok(map.mapped_extents)
}
