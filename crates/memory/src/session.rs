//! The memory of one session: a queue page and data buffers, shared by the server and one client.
//!
//! Promise: it has the size it was made with for as long as anybody maps it, whatever a client
//! tries; no access reaches outside of it, and none has a slice of it that the other side could
//! change under a reader.
//! Never: trusts what is in it. The server copies out, then checks the copy.
//!
//! It is a memfd, sealed against shrinking, growing and further seals: a file that a client could
//! shrink would end the server with SIGBUS. Its pages are allocated when it is made.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    ftruncate, memfd_create,
};

use crate::queue::{PAGE_BYTES, Queue};

#[allow(unsafe_code)]
mod raw;

use raw::SharedBytes;

/// The most data a session can have; an offset in a request has 32 bits.
pub const BUFFER_BYTES_MAX: u32 = 1 << 30;

/// What a session's memory must be sealed against: a change of its size.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// A mapped session memory.
#[derive(Debug)]
pub struct SessionMemory {
    bytes: SharedBytes,
    damages: AtomicU64,
}

/// Why a session's memory could not be made.
#[non_exhaustive]
#[derive(Debug)]
pub enum CreateSessionError {
    /// More data than [`BUFFER_BYTES_MAX`], or none. Ask for another size.
    Size {
        /// What was asked for.
        buffer_bytes: u32,
    },
    /// The system refused: it is short of memory, or of descriptors. Try again later.
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a descriptor is no session's memory.
#[non_exhaustive]
#[derive(Debug)]
pub enum MapSessionError {
    /// Its size may change, so touching it could end this process. Refuse the peer.
    NotSealed,
    /// It has no size that a session's memory can have. Refuse the peer.
    Size {
        /// Bytes it has.
        bytes: u64,
    },
    /// The system refused.
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// A range that does not lie in the data buffers. Refuse the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBuffer {
    /// Where the range begins, in bytes from the start of the buffers.
    pub offset: u32,
    /// Its length.
    pub bytes: usize,
}

impl SessionMemory {
    /// Makes, sizes and seals memory with this much data, all zeros; and the descriptor by which
    /// the client maps it too.
    ///
    /// # Errors
    /// See [`CreateSessionError`].
    pub fn create_sealed(
        buffer_bytes: u32,
    ) -> Result<(SessionMemory, OwnedFd), CreateSessionError> {
        if buffer_bytes == 0 || buffer_bytes > BUFFER_BYTES_MAX {
            return Err(CreateSessionError::Size { buffer_bytes });
        }
        let bytes = PAGE_BYTES as u64 + u64::from(buffer_bytes);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("holdfast session", flags).map_err(making("make a memfd"))?;
        ftruncate(&file, bytes).map_err(making("size a memfd"))?;
        fallocate(&file, FallocateFlags::empty(), 0, bytes).map_err(making("allocate a memfd"))?;
        fcntl_add_seals(&file, SEALS | SealFlags::SEAL).map_err(making("seal a memfd"))?;
        let bytes =
            SharedBytes::map(file.as_fd(), bytes as usize).map_err(making("map a memfd"))?;
        Ok((SessionMemory { bytes, damages: AtomicU64::new(0) }, file))
    }

    /// Maps what the other side made. The descriptor may be closed afterwards.
    ///
    /// # Errors
    /// See [`MapSessionError`].
    pub fn map(file: BorrowedFd<'_>) -> Result<SessionMemory, MapSessionError> {
        let seals = fcntl_get_seals(file).map_err(mapping("ask for the seals"))?;
        if !seals.contains(SEALS) {
            return Err(MapSessionError::NotSealed);
        }
        let bytes = fstat(file).map_err(mapping("ask for the size"))?.st_size as u64;
        let page = PAGE_BYTES as u64;
        if bytes <= page || bytes > page + u64::from(BUFFER_BYTES_MAX) {
            return Err(MapSessionError::Size { bytes });
        }
        let bytes = SharedBytes::map(file, bytes as usize).map_err(mapping("map it"))?;
        Ok(SessionMemory { bytes, damages: AtomicU64::new(0) })
    }

    /// Gives every page back to the system, for everybody who has this memory mapped or open; it
    /// reads as zeros then. Without it a client that keeps the descriptor keeps the pages.
    ///
    /// # Errors
    /// The system keeps them.
    pub fn discard(&self) -> io::Result<()> {
        Ok(self.bytes.discard()?)
    }

    /// The queue of this session.
    #[must_use]
    pub fn queue(&self) -> Queue<'_> {
        Queue::over(self.bytes.page(), &self.damages)
    }

    /// Bytes of data.
    #[must_use]
    pub fn buffer_bytes(&self) -> u32 {
        (self.bytes.len() - PAGE_BYTES) as u32
    }

    /// Copies data out. What the other side writes meanwhile may be half in the copy.
    ///
    /// # Errors
    /// The range is not in the buffers; nothing was copied.
    pub fn copy_out(&self, offset: u32, into: &mut [u8]) -> Result<(), OutOfBuffer> {
        let at = self.place(offset, into.len())?;
        self.bytes.copy_out(at, into);
        Ok(())
    }

    /// Copies data in.
    ///
    /// # Errors
    /// The range is not in the buffers; nothing was copied.
    pub fn copy_in(&self, offset: u32, from: &[u8]) -> Result<(), OutOfBuffer> {
        let at = self.place(offset, from.len())?;
        self.bytes.copy_in(at, from);
        Ok(())
    }

    /// Where a range of the buffers lies in the memory.
    fn place(&self, offset: u32, bytes: usize) -> Result<usize, OutOfBuffer> {
        let room = (self.buffer_bytes() as usize).checked_sub(offset as usize);
        let fits = room.is_some_and(|room| bytes <= room);
        if fits { Ok(PAGE_BYTES + offset as usize) } else { Err(OutOfBuffer { offset, bytes }) }
    }
}

fn making(doing: &'static str) -> impl Fn(rustix::io::Errno) -> CreateSessionError {
    move |errno| CreateSessionError::Io { doing, source: errno.into() }
}

fn mapping(doing: &'static str) -> impl Fn(rustix::io::Errno) -> MapSessionError {
    move |errno| MapSessionError::Io { doing, source: errno.into() }
}

impl fmt::Display for CreateSessionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { buffer_bytes } => {
                write!(
                    out,
                    "a session has 1 to {BUFFER_BYTES_MAX} bytes of data, not {buffer_bytes}"
                )
            }
            Self::Io { doing, source } => write!(out, "cannot {doing}: {source}"),
        }
    }
}

impl fmt::Display for MapSessionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSealed => write!(out, "the memory's size is not sealed"),
            Self::Size { bytes } => write!(out, "no session's memory has {bytes} bytes"),
            Self::Io { doing, source } => write!(out, "cannot {doing}: {source}"),
        }
    }
}

impl fmt::Display for OutOfBuffer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes from byte {} are not in the buffers", self.bytes, self.offset)
    }
}

impl std::error::Error for CreateSessionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Size { .. } => None,
        }
    }
}

impl std::error::Error for MapSessionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::NotSealed | Self::Size { .. } => None,
        }
    }
}

impl std::error::Error for OutOfBuffer {}
