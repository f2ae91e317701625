//! A way to wake a thread that waits for a socket.
//!
//! Promise: who waits after a call of `wake` does not wait.
//! Never: carries a message.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Readable once somebody called [`WakeUp::wake`], until [`WakeUp::calm`].
pub(crate) struct WakeUp(OwnedFd);

impl WakeUp {
    pub(crate) fn new() -> io::Result<WakeUp> {
        Ok(WakeUp(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    #[expect(clippy::host_endian_bytes, reason = "the kernel speaks the machine's byte order")]
    pub(crate) fn wake(&self) {
        // It fails only when it is far beyond readable already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(crate) fn calm(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for WakeUp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
