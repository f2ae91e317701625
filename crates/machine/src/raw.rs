//! Descriptors and signals by number.
//!
//! Promise: turns the number of a descriptor inherited from the keeper into an owned one, once; has
//! the kernel drop a signal, or give it.
//! A process starts with the descriptors that it was meant to have, and starts others so.
//! Never: is used for anything but the numbers that the keeper's hidden subcommands are given, and
//! signals that [`crate::signals`] names.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Takes ownership of an inherited descriptor and keeps it from being inherited further.
/// Fails with `EBADF` if nothing is open at that number.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    if number < 3 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number is only asked about; a number that is not open is answered with EBADF.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: it is open (asked above), it came with exec, so nothing in this process owns it, and
    // the caller asks for each number once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Has the kernel drop this signal instead of giving it to this process, or to a program that takes
/// its place.
pub(crate) fn ignore_signal(number: i32) -> io::Result<()> {
    // SAFETY: a signal that is ignored runs no code here; a number that is none, or that cannot be
    // ignored, is answered with EINVAL.
    match unsafe { libc::signal(number, libc::SIG_IGN) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _before => Ok(()),
    }
}

/// From now on this process hears of every signal that is for it, and of the end of each process
/// that it starts, whatever its own starter did not want to hear of.
pub(crate) fn hear_signals() {
    // SAFETY: an all-zero set is a valid one, which the first call fills in; no code of ours runs
    // for a signal that the kernel answers by itself, and none of the calls keeps what it is given.
    let heard = unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none) == 0
            && libc::signal(libc::SIGCHLD, libc::SIG_DFL) != libc::SIG_ERR
            && libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) == 0
    };
    assert!(heard, "the kernel knows these signals");
}

/// Closes every descriptor from this number on. To be called before this process has opened any.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: the caller says that nothing here owns a descriptor yet, and closes no standard
    // stream; whoever started this process left the others open by accident.
    match unsafe { libc::syscall(libc::SYS_close_range, first.max(3), u32::MAX, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the program inherit these descriptors beside its standard streams, and no other.
pub fn inherit_exactly(command: &mut Command, descriptors: Vec<RawFd>) {
    let pass = move || {
        let marked = libc::CLOSE_RANGE_CLOEXEC;
        // SAFETY: between fork and exec only system calls are made, on numbers that stay open: what
        // is marked is closed by the exec, and the copy of the caller's descriptors is this
        // process's own.
        if unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, marked) } != 0 {
            return Err(io::Error::last_os_error());
        }
        for number in &descriptors {
            // SAFETY: as above.
            if unsafe { libc::fcntl(*number, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing, takes no lock and touches no memory but its own copy.
    unsafe { command.pre_exec(pass) };
}
