//! Memory that is always there, and a thread that goes first.
//!
//! Promise: a [`LockedBuffer`] is resident from its first to its last moment. The kernel copies
//! requests into it without a page fault, so a kill in the middle of a copy cannot turn into an
//! error for the program that asked.
//! Never: shares memory with another process.

use std::ffi::c_void;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap_anonymous, munmap};

/// Zeroed, page-aligned, pre-faulted, locked bytes.
pub(crate) struct LockedBuffer {
    start: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: the mapping is private to this value, which is the only way to reach it.
unsafe impl Send for LockedBuffer {}

impl LockedBuffer {
    /// `bytes` is a multiple of the page size.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no other.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        let buffer = Self { start, bytes };
        // SAFETY: the range is the mapping just made. The advice does not change its contents; it
        // keeps the pages from being taken away for a moment while they are joined to huge ones.
        unsafe { madvise(start.as_ptr(), bytes, Advice::LinuxNoHugepage) }?;
        // SAFETY: the range is the mapping just made.
        unsafe { mlock(start.as_ptr(), bytes) }?;
        Ok(buffer)
    }
}

impl Deref for LockedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is readable, initialised by the kernel, `bytes` long, and lives as
        // long as `self`; `&self` keeps writers out.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes) }
    }
}

impl DerefMut for LockedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` is the only way in.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes) }
    }
}

impl Drop for LockedBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no slice of it outlives the value.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Lets this thread run whenever it can, before every ordinary one, and not its children. Fails
/// without `CAP_SYS_NICE` or `RLIMIT_RTPRIO`.
pub(crate) fn go_first() -> io::Result<()> {
    const THIS_THREAD: libc::pid_t = 0;
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads the structure, which lives until it returns, and touches no memory.
    let set = unsafe {
        libc::sched_setscheduler(THIS_THREAD, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &lowest)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
