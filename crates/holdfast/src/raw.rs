//! Descriptors by number.
//!
//! Promise: turns the number of a descriptor inherited from the keeper into an owned one, once.
//! Never: is used for anything but the numbers of the hidden `front` subcommand.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

/// Takes ownership of an inherited descriptor and keeps it from being inherited further.
/// Fails with `EBADF` if nothing is open at that number.
pub(crate) fn inherited(number: i32) -> io::Result<OwnedFd> {
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
