//! One end of a connection into which somebody else may put descriptors.
//!
//! Promise: whatever a peer puts into it, hearing it and closing it wait for nobody. The last
//! reference of a file that takes long to close, as a socket does that lingers, is dropped by a
//! thread that is about to end, and for which nobody waits.
//! Never: takes a descriptor from a peer, or bytes that came with one.

use std::io::IoSliceMut;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::sync_channel;
use std::thread::Builder;

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_oobinline;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, ReturnFlags, recv, recvmsg};

#[allow(unsafe_code)]
mod raw;

/// As many bytes as are looked at before what came is closed with them.
const LOOK_BYTES: usize = 4096;

/// Has the kernel refuse descriptors to whoever sends them, at a socket that listens and at all
/// connections that are made from then on. Kernels before 6.16 cannot: there [`Connection`] is
/// what keeps a thread from waiting.
pub fn refuse_descriptors(listener: &impl AsFd) {
    let _is_known = raw::refuse_descriptors(listener.as_fd());
}

/// A connection. Only what comes through [`Self::hear`] may be taken from it.
#[derive(Debug)]
pub struct Connection(Option<UnixStream>);

impl Connection {
    /// Takes one that was accepted, of which nothing was heard yet.
    #[must_use]
    pub fn new(stream: UnixStream) -> Connection {
        // An urgent byte that is not inline is dropped by whoever hears what lies behind it, and is
        // not seen before. A kernel without urgent bytes has no use for this.
        let _ = set_socket_oobinline(&stream, true);
        Connection(Some(stream))
    }

    /// Takes what has come; nothing at the end.
    ///
    /// # Errors
    /// `AGAIN` if nothing has come yet, `BADMSG` if a descriptor has, which stays where it is; else
    /// as `recv(2)`.
    pub fn hear(&self, room: &mut [u8]) -> Result<usize, Errno> {
        hear(self.stream(), room)
    }

    fn stream(&self) -> &UnixStream {
        self.0.as_ref().expect("it is open until it is dropped")
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream().as_fd()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let stream = self.0.take().expect("it is dropped once");
        // From here on nobody can put anything into it. It fails on no connection.
        let _ = stream.shutdown(Shutdown::Read);
        if has_descriptors(&stream) {
            close_aside(stream.into());
        }
    }
}

/// A look takes a copy of each descriptor and drops it again, which is never the last; what was
/// seen to have come without one is then taken.
fn hear(stream: &UnixStream, room: &mut [u8]) -> Result<usize, Errno> {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let mut parts = [IoSliceMut::new(&mut *room)];
    let seen = recvmsg(stream, &mut parts, &mut RecvAncillaryBuffer::default(), flags)?;
    if seen.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::BADMSG);
    }
    let taken = recv(stream, &mut room[..seen.bytes], RecvFlags::DONTWAIT)?;
    Ok(taken.1)
}

/// Whether there are any in what has come, up to its end.
fn has_descriptors(stream: &UnixStream) -> bool {
    let mut room = [0; LOOK_BYTES];
    loop {
        match hear(stream, &mut room) {
            Err(Errno::BADMSG) => return true,
            Ok(1..) | Err(Errno::INTR) => {}
            Ok(0) | Err(_) => return false,
        }
    }
}

/// Closes a connection with what lies in it. A process that ends, and a thread that has
/// descriptors of its own, closes them without lingering: so the last reference is one of a
/// thread that ends.
fn close_aside(stream: OwnedFd) {
    let (hand, handed) = sync_channel::<OwnedFd>(1);
    let (give_back, given_back) = sync_channel(1);
    let (closed, is_closed) = sync_channel::<()>(0);
    let end = move || {
        let Ok(stream) = handed.recv() else { return };
        match raw::keep_from(stream.as_fd()) {
            Ok(()) => {
                let _ = give_back.send(stream);
                let _closed = is_closed.recv();
            }
            // This thread waits for as long as it takes, and nobody for it.
            Err(_) => {
                drop(give_back);
                drop(stream);
            }
        }
    };
    if Builder::new().name("closing".into()).spawn(end).is_err() {
        // Left open, which is a descriptor; closed, it would be this thread for an hour.
        std::mem::forget(stream);
        return;
    }
    let _ = hand.send(stream);
    drop(given_back.recv());
    drop(closed);
}

#[cfg(test)]
mod tests;
