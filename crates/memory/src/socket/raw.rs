//! The calls that send and receive bytes which others may change: no slice of them may exist.
//!
//! Promise: the kernel reads and writes what it is told to, while that lives, and nothing else.
//! Never: waits for the socket, or lets a lost peer end the process.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use crate::raw::Mapping;

/// Bytes that the kernel may read for as long as they live.
pub(super) struct Span<'b> {
    first: NonNull<u8>,
    bytes: usize,
    lives: PhantomData<&'b [u8]>,
}

impl<'b> Span<'b> {
    /// Of a mapping, whose bytes others may write. They are none that `Mapping::bytes_mut` is used
    /// on.
    pub(super) fn held(mapping: &'b Mapping, offset: u64, bytes: usize) -> Span<'b> {
        Span { first: mapping.address(offset, bytes as u64), bytes, lives: PhantomData }
    }

    /// Of bytes that nobody changes.
    pub(super) fn of(bytes: &'b [u8]) -> Span<'b> {
        Span { first: NonNull::from(bytes).cast(), bytes: bytes.len(), lives: PhantomData }
    }
}

/// Sends without waiting; see `sendmsg(2)`.
pub(super) fn send(socket: BorrowedFd<'_>, spans: &[Span<'_>]) -> io::Result<usize> {
    let vector =
        |span: &Span<'_>| libc::iovec { iov_base: span.first.as_ptr().cast(), iov_len: span.bytes };
    let mut vectors: Vec<libc::iovec> = spans.iter().map(vector).collect();
    let message = message(&mut vectors);
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the vectors live until the call is over, and so do the bytes, by their lifetimes; the
    // kernel only reads them.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives without waiting into places of a mapping, offsets and lengths of it; see `recvmsg(2)`.
/// They are none that `Mapping::bytes_mut` is used on.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    mapping: &Mapping,
    places: &[(u64, usize)],
) -> io::Result<usize> {
    let vector = |&(offset, bytes): &(u64, usize)| {
        let first = mapping.address(offset, bytes as u64);
        libc::iovec { iov_base: first.as_ptr().cast(), iov_len: bytes }
    };
    let mut vectors: Vec<libc::iovec> = places.iter().map(vector).collect();
    let mut message = message(&mut vectors);
    // SAFETY: the vectors and the mapping live until the call is over; each vector is inside the
    // mapping, of whose bytes there are no references.
    let received =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// A message of these parts. It must not be used once they are gone.
fn message(vectors: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: a message is integers and pointers; zeros say that it has no address, no vectors and
    // no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len() as _;
    message
}
