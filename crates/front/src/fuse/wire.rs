//! Numbers of the kernel's FUSE protocol, version 7, as in `linux/fuse.h`.
//!
//! Promise: every number of the protocol that this crate uses is named here once.
//! Never: computes.

/// Bytes of a request's header.
pub(crate) const IN_HEADER_BYTES: usize = 40;
/// Bytes of a reply's header.
pub(crate) const OUT_HEADER_BYTES: usize = 16;
/// Set in `unique` of a request that the kernel sends a second time. The answer repeats it.
pub(crate) const UNIQUE_RESENT: u64 = 1 << 63;
/// Notification code that asks for all unanswered requests again.
pub(crate) const NOTIFY_RESEND: i32 = 7;

/// Largest WRITE payload and READ answer.
pub(crate) const TRANSFER_BYTES_MAX: usize = 1 << 20;
/// `TRANSFER_BYTES_MAX` in pages.
pub(crate) const TRANSFER_PAGES_MAX: u16 = 256;
const _: () = assert!(TRANSFER_PAGES_MAX as usize * 4096 == TRANSFER_BYTES_MAX);

/// Operation codes.
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const SETXATTR: u32 = 21;
    pub(crate) const GETXATTR: u32 = 22;
    pub(crate) const LISTXATTR: u32 = 23;
    pub(crate) const REMOVEXATTR: u32 = 24;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
    pub(crate) const READDIRPLUS: u32 = 44;
    pub(crate) const RENAME2: u32 = 45;
    pub(crate) const LSEEK: u32 = 46;
    pub(crate) const SYNCFS: u32 = 50;
    pub(crate) const TMPFILE: u32 = 51;
}

/// Features offered and accepted by INIT.
pub(crate) mod init {
    pub(crate) const ASYNC_READ: u64 = 1 << 0;
    pub(crate) const ATOMIC_O_TRUNC: u64 = 1 << 3;
    pub(crate) const BIG_WRITES: u64 = 1 << 5;
    pub(crate) const DONT_MASK: u64 = 1 << 6;
    pub(crate) const DO_READDIRPLUS: u64 = 1 << 13;
    pub(crate) const READDIRPLUS_AUTO: u64 = 1 << 14;
    pub(crate) const ASYNC_DIO: u64 = 1 << 15;
    pub(crate) const NO_OPEN_SUPPORT: u64 = 1 << 17;
    pub(crate) const PARALLEL_DIROPS: u64 = 1 << 18;
    pub(crate) const POSIX_ACL: u64 = 1 << 20;
    pub(crate) const MAX_PAGES: u64 = 1 << 22;
    pub(crate) const CACHE_SYMLINKS: u64 = 1 << 23;
    pub(crate) const NO_OPENDIR_SUPPORT: u64 = 1 << 24;
    pub(crate) const EXPLICIT_INVAL_DATA: u64 = 1 << 25;
    pub(crate) const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
    pub(crate) const SETXATTR_EXT: u64 = 1 << 29;
    pub(crate) const INIT_EXT: u64 = 1 << 30;
    pub(crate) const DIRECT_IO_ALLOW_MMAP: u64 = 1 << 36;
    pub(crate) const HAS_RESEND: u64 = 1 << 39;
}

/// `valid` bits of SETATTR.
pub(crate) mod setattr {
    pub(crate) const MODE: u32 = 1 << 0;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
    pub(crate) const ATIME: u32 = 1 << 4;
    pub(crate) const MTIME: u32 = 1 << 5;
    pub(crate) const ATIME_NOW: u32 = 1 << 7;
    pub(crate) const MTIME_NOW: u32 = 1 << 8;
    pub(crate) const KILL_SUIDGID: u32 = 1 << 11;
}

/// WRITE: the writer loses set-user-id and set-group-id bits.
pub(crate) const WRITE_KILL_SUIDGID: u32 = 1 << 2;
/// OPEN and CREATE: truncation does the same.
pub(crate) const OPEN_KILL_SUIDGID: u32 = 1 << 0;

/// Answer of OPEN: no page cache for this descriptor.
pub(crate) const FOPEN_DIRECT_IO: u32 = 1 << 0;
/// Answer of OPEN: cached pages stay valid.
pub(crate) const FOPEN_KEEP_CACHE: u32 = 1 << 1;
/// Answer of OPEN: direct writes that do not extend the file run side by side.
pub(crate) const FOPEN_PARALLEL_DIRECT_WRITES: u32 = 1 << 6;

pub(crate) const O_EXCL: u32 = 0o200;
pub(crate) const O_TRUNC: u32 = 0o1000;
/// Each write is synchronous; `O_SYNC` contains it.
pub(crate) const O_DSYNC: u32 = 0o10000;

pub(crate) const RENAME_NOREPLACE: u32 = 1;
pub(crate) const RENAME_EXCHANGE: u32 = 2;

pub(crate) const XATTR_CREATE: u32 = 1;
pub(crate) const XATTR_REPLACE: u32 = 2;
/// SETXATTR: a list of access takes set-group-id away.
pub(crate) const SETXATTR_ACL_KILL_SGID: u32 = 1;

pub(crate) const FALLOCATE_KEEP_SIZE: u32 = 1;
pub(crate) const FALLOCATE_PUNCH_HOLE: u32 = 2;
pub(crate) const FALLOCATE_ZERO_RANGE: u32 = 16;

pub(crate) const SEEK_DATA: u32 = 3;
pub(crate) const SEEK_HOLE: u32 = 4;

pub(crate) const EPERM: i32 = 1;
pub(crate) const ENOENT: i32 = 2;
pub(crate) const EIO: i32 = 5;
pub(crate) const EEXIST: i32 = 17;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const ERANGE: i32 = 34;
pub(crate) const ENOSYS: i32 = 38;
pub(crate) const EPROTO: i32 = 71;
pub(crate) const EOPNOTSUPP: i32 = 95;

/// Set-user-id.
pub(crate) const S_ISUID: u32 = 0o4000;
/// Set-group-id.
pub(crate) const S_ISGID: u32 = 0o2000;
/// Group may execute.
pub(crate) const S_IXGRP: u32 = 0o010;
