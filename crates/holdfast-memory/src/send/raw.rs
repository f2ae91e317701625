//! The call that sends bytes which others may change: no slice of them may exist.
//!
//! Promise: the kernel reads what the spans name, while they live, and nothing else.
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
    // SAFETY: a message is integers and pointers; zeros say that it has no address, no vectors and
    // no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len() as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the vectors live until the call is over, and so do the bytes, by their lifetimes; the
    // kernel only reads them.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
