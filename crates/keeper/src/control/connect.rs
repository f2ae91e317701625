//! Connecting to the control socket.
//!
//! Promise: whoever connects waits no longer than [`SILENCE`], also for a keeper that takes nobody.
//! Never: says anything.

use holdfast_io::private::check_listener;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a keeper may say nothing before it is looked at.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// How often is tried again to be heard by a keeper with too many to hear.
pub(super) const RETRY_EVERY: Duration = Duration::from_millis(20);

/// Connects, and does not wait for room in the queue of a keeper that takes nobody out of it.
pub(super) fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (address, begun) = (SocketAddrUnix::new(socket)?, Instant::now());
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    loop {
        let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&stream, &address) {
            Ok(()) => {
                check_listener(socket, &stream)?;
                rustix::io::ioctl_fionbio(&stream, false)?;
                return Ok(UnixStream::from(stream));
            }
            Err(Errno::AGAIN) if begun.elapsed() < SILENCE => std::thread::sleep(RETRY_EVERY),
            Err(Errno::AGAIN) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// True if a keeper can be asked there, whether or not it answers.
pub(crate) fn listens(socket: &Path) -> bool {
    match connect(socket) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::TimedOut,
    }
}
