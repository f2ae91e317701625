//! A disk of a fixed number of bytes, as its users see one.
//!
//! Promise: the whole border between protocols above and whatever keeps the bytes below; a front
//! end is written against [`Blocks`] and knows nothing else of what it serves.
//! Never: speaks of a protocol, or of where the bytes are.

use std::io;
use std::os::fd::BorrowedFd;

/// Why an operation on blocks did not happen.
#[derive(Debug)]
#[non_exhaustive]
pub enum BlocksError {
    /// The range ends behind the last byte. Nothing was done; ask for less.
    OutOfRange,
    /// No space is left below. Make room there and repeat. Nothing was done, but of a write of more
    /// than [`Blocks::atomic_bytes_max`] perhaps its first pieces.
    NoSpace,
    /// What keeps the bytes failed. A write may have happened or not; what was acknowledged before
    /// is as it was.
    Failed(io::Error),
}

impl std::fmt::Display for BlocksError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BlocksError::OutOfRange => write!(out, "the range ends behind the last byte"),
            BlocksError::NoSpace => write!(out, "no space is left"),
            BlocksError::Failed(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for BlocksError {}

/// Why [`Blocks::send`] sent nothing.
#[derive(Debug)]
pub enum SendError {
    /// The bytes cannot be sent from where they are, or not now: read them, and send the copy.
    Copy,
    /// The socket takes nothing now (`WouldBlock`), or never again.
    Socket(io::Error),
}

/// Bytes of a disk that are to be sent, between others.
#[derive(Clone, Copy, Debug)]
pub struct Sending<'b> {
    /// Goes in front of them.
    pub head: &'b [u8],
    /// Where on the disk they begin.
    pub offset: u64,
    /// How many there are.
    pub bytes: usize,
    /// Goes behind the last of them.
    pub tail: &'b [u8],
}

/// A write whose bytes are received where they will lie. Nothing of it is on the disk before
/// [`Receiving::commit`], and nothing ever if it is dropped before.
pub trait Receiving {
    /// Bytes that have not come yet.
    fn left_bytes(&self) -> usize;
    /// Takes bytes that were received elsewhere, no more than are left.
    fn put(&mut self, bytes: &[u8]);
    /// Receives what a socket has, without waiting; returns how many bytes came. None means that no
    /// more will.
    ///
    /// # Errors
    /// What `recvmsg(2)` says; nothing came.
    fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize>;
    /// What has come, for who receives the rest elsewhere.
    fn take_back(&self) -> Vec<u8>;
    /// Writes it, as [`Blocks::write`] would.
    ///
    /// # Errors
    /// As for [`Blocks::write`].
    ///
    /// # Panics
    /// If bytes are left.
    fn commit(self: Box<Self>) -> Result<(), BlocksError>;
}

/// A stretch of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where it ends: behind where it was asked for.
    pub end: u64,
    /// It has no room, and reads as zeros.
    pub is_hole: bool,
}

/// A disk. Every method may be called from several threads at once; ranges may start and end at
/// any byte, and none may end behind [`Blocks::size_bytes`].
///
/// Durability: what the `Ok` of a change means is the disk's matter, and so is how much of it
/// [`Blocks::flush`] still has to do. Changes that were acknowledged in one order are kept in it.
///
/// Every operation may be repeated: done twice it leaves what it leaves when done once, as long as
/// nobody changed the range in between. Front ends that were killed rely on that.
pub trait Blocks: Send + Sync {
    /// Bytes of the disk.
    fn size_bytes(&self) -> u64;
    /// Fills `into` with the bytes at `offset`.
    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError>;
    /// Sends to a socket what [`Blocks::read`] would give, straight from where the bytes are kept:
    /// as much as is at hand and as the socket takes without waiting. Returns how many bytes that
    /// were, those of head and tail included.
    ///
    /// # Errors
    /// See [`SendError`]; nothing was sent. A disk that keeps its bytes elsewhere has all copied.
    fn send(&self, _socket: BorrowedFd<'_>, _what: &Sending<'_>) -> Result<usize, SendError> {
        Err(SendError::Copy)
    }
    /// Reads of so many bytes and more are better sent by [`Blocks::send`] than read.
    fn send_bytes_min(&self) -> usize {
        usize::MAX
    }
    /// Has room made for a write of so many bytes that are still to come, straight to where the
    /// bytes are kept. `None`: there is none, or none now; receive them elsewhere, and write them.
    fn receive(&self, _offset: u64, _bytes: usize) -> Option<Box<dyn Receiving + '_>> {
        None
    }
    /// Writes of so many bytes and more are better received by [`Blocks::receive`] than written.
    fn receive_bytes_min(&self) -> usize {
        usize::MAX
    }
    /// Writes all of `from`. Up to [`Blocks::atomic_bytes_max`] it is wholly there after any
    /// failure, or not at all; more is written in pieces of that size, in order.
    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError>;
    /// Makes a range read as zeros; its space stays reserved.
    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError>;
    /// Makes a range read as zeros, and gives its space back where that is possible.
    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError>;
    /// Whether the byte at `offset`, which is on the disk, has room, and how far that is so at
    /// least. A disk that does not know where it has none has room everywhere.
    fn extent_at(&self, _offset: u64) -> Result<Extent, BlocksError> {
        Ok(Extent { end: self.size_bytes(), is_hole: false })
    }
    /// Makes everything acknowledged so far as durable as the disk promises.
    fn flush(&self) -> Result<(), BlocksError>;
    /// Most bytes of one write that are there wholly or not at all.
    fn atomic_bytes_max(&self) -> usize;
}
