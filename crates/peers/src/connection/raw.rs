//! Two calls that no library has.
//!
//! Promise: they change a socket's option, and whose a thread's descriptors are.
//! Never: closes a descriptor that somebody else uses.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Whether a socket takes descriptors, as Linux 6.16 and later have it.
const SO_PASSRIGHTS: libc::c_int = 83;

/// Has a socket take no descriptors; see `unix(7)`.
pub(super) fn refuse_descriptors(socket: BorrowedFd<'_>) -> io::Result<()> {
    let no: libc::c_int = 0;
    let bytes = size_of_val(&no) as libc::socklen_t;
    // SAFETY: the kernel reads an integer that lives until the call is over.
    let set = unsafe {
        let (fd, level) = (socket.as_raw_fd(), libc::SOL_SOCKET);
        libc::setsockopt(fd, level, SO_PASSRIGHTS, (&raw const no).cast(), bytes)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives this thread a table of descriptors of its own, with copies of this one and those of lower
/// numbers: they are closed when the thread ends. What it closes itself from then on nobody else
/// loses, and what it opens nobody else has, so it should do neither.
pub(super) fn keep_from(last: BorrowedFd<'_>) -> io::Result<()> {
    let first = last.as_raw_fd().unsigned_abs() + 1;
    let own = libc::CLOSE_RANGE_UNSHARE;
    // SAFETY: only copies are closed, which this call has made, or not even made, for this thread.
    match unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, own) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
