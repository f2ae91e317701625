//! A fork, as the C library does it.
//!
//! Promise: memory is whole in the child, as far as the C library's own is concerned.
//! Never: runs what a process runs at its end.

/// The child's number in the parent, 0 in the child, less if there is none.
pub(super) fn fork() -> i32 {
    // SAFETY: the caller's process has no thread with a lock that the child takes: see the head of
    // `forked`. The C library sees to its own.
    unsafe { libc::fork() }
}

/// Ends this process by a signal, so many seconds from now.
pub(super) fn end_after(seconds: u32) {
    // SAFETY: it touches no memory.
    unsafe { libc::alarm(seconds) };
}

pub(super) fn exit(status: i32) -> ! {
    // SAFETY: it touches no memory.
    unsafe { libc::_exit(status) }
}

/// How a child ended: as `waitpid` says it.
pub(super) fn wait(child: i32) -> i32 {
    let mut status = -1;
    // SAFETY: the kernel writes one number.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    status
}
