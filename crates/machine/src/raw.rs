//! Descriptors and signals by number.
//!
//! Promise: turns the number of a descriptor inherited from the keeper into an owned one, once; has
//! the kernel drop a signal, or give it.
//! Tells tasks that share what they have from those that do not, and finds on one mount what is
//! open on another.
//! A process starts with the descriptors that it was meant to have, and starts others so.
//! Never: is used for anything but the numbers that the keeper's hidden subcommands are given,
//! signals that [`crate::signals`] names, and looks at what other processes have.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
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

/// Whether two tasks have one table of descriptors, and one working directory; `None` if the kernel
/// does not tell.
pub(crate) fn share_files(one: u32, other: u32) -> Option<bool> {
    // From `linux/kcmp.h`.
    const KCMP_FILES: libc::c_int = 2;
    const KCMP_FS: libc::c_int = 3;
    let (one, other) = (libc::pid_t::try_from(one).ok()?, libc::pid_t::try_from(other).ok()?);
    let differ = |what: libc::c_int| {
        // SAFETY: the kernel compares what two tasks have, and is given numbers alone.
        match unsafe { libc::syscall(libc::SYS_kcmp, one, other, what, 0, 0) } {
            told @ 0.. => Some(told != 0),
            _ => None,
        }
    };
    Some(!differ(KCMP_FILES)? && !differ(KCMP_FS)?)
}

/// What a link of `/proc` leads to, found anew on the mount that this descriptor is on, where the
/// file system has handles for that. A directory has its name there.
pub fn found_on(mount: BorrowedFd<'_>, link: &Path) -> io::Result<OwnedFd> {
    const BYTES_MAX: usize = 128;
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        data: [u8; BYTES_MAX],
    }
    let link = CString::new(link.as_os_str().as_bytes())?;
    let (call, follow) = (libc::SYS_name_to_handle_at, libc::AT_SYMLINK_FOLLOW);
    let mut handle = Handle { bytes: BYTES_MAX as u32, kind: 0, data: [0; BYTES_MAX] };
    let (at, mut number) = (&raw mut handle, 0);
    // SAFETY: the kernel reads the name up to its end, and writes one number and no more into the
    // handle than it is told that there is room for; both are here until it has returned.
    let told =
        unsafe { libc::syscall(call, libc::AT_FDCWD, link.as_ptr(), at, &raw mut number, follow) };
    if told < 0 {
        return Err(io::Error::last_os_error());
    }
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: the kernel reads the handle that it has made, and nothing else.
    match unsafe { libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), at, flags) } {
        // SAFETY: it was opened just now, and nobody else knows its number.
        number @ 0.. => Ok(unsafe { OwnedFd::from_raw_fd(number as RawFd) }),
        _ => Err(io::Error::last_os_error()),
    }
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
