//! The disk in the server, as a disk.
//!
//! Promise: each operation is one request or, if it is long, several in a row; those that were
//! under way when the server died are repeated to the next one. A disk that is another one by then
//! is refused.
//! Never: answers from anything but the server; it keeps no block.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdfast_io::{Blocks, BlocksError};
use holdfast_memory::queue::Response;

use crate::answer::{Refusal, judged};
use crate::call::{Call, ResponseTarget};
use crate::connect::ConnectError;
use crate::protocol::{DISK_PREFIX, Operation, Status, ZEROES_BYTES_MAX};
use crate::session::{Patience, Session};

/// How long a disk waits until there is room for it again.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(10);

/// A served disk. Threads may share it, each with one request under way; threads that are never to
/// wait for each other connect once each. Several clients may have one disk: what one of them was
/// acknowledged, the others read.
///
/// While there is no server, operations wait. They fail with [`BlocksError::Failed`] once the
/// server refuses this client, or serves another disk under the name.
///
/// Durability: that of the disk in the server.
#[derive(Debug)]
pub struct BlocksClient {
    session: Session,
}

impl BlocksClient {
    /// Connects to the disk `name` of the server that listens at `socket`. Waits up to ten seconds
    /// while it has as many clients as it takes: the server may not have seen one go.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(socket: &Path, name: &str) -> Result<BlocksClient, ConnectError> {
        let patience = Patience { first: REFUSAL_PATIENCE, later: REFUSAL_PATIENCE };
        let session = Session::open(socket.to_owned(), format!("{DISK_PREFIX}{name}"), patience)?;
        Ok(BlocksClient { session })
    }

    /// Most bytes of one request.
    fn piece_bytes(&self) -> usize {
        self.session.reply().payload_bytes_max as usize
    }

    fn check_range(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= self.size_bytes());
        if is_inside { Ok(()) } else { Err(BlocksError::OutOfRange) }
    }

    fn ask(&self, ask: &Call<'_>, into: &mut ResponseTarget<'_>) -> Result<Response, BlocksError> {
        let answer = self.session.ask(ask, into).map_err(|error| failed(&error))?;
        judged(answer).map_err(|refusal| blocks_error(&refusal))
    }

    /// Makes a range zeros, one stretch after another.
    fn empty(&self, how: Operation, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.check_range(offset, bytes)?;
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let stretch = (end - at).min(ZEROES_BYTES_MAX);
            self.ask(&Call::new(how, [at, stretch]), &mut ResponseTarget::Nowhere)?;
            at += stretch;
        }
        Ok(())
    }
}

impl Blocks for BlocksClient {
    fn size_bytes(&self) -> u64 {
        self.session.reply().facts[0]
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        self.check_range(offset, into.len() as u64)?;
        let offsets = (offset..).step_by(self.piece_bytes());
        for (offset, piece) in offsets.zip(into.chunks_mut(self.piece_bytes())) {
            let bytes = piece.len() as u32;
            let ask = Call { bytes, ..Call::new(Operation::ReadBlocks, [offset, 0]) };
            let answer = self.ask(&ask, &mut ResponseTarget::Slice(piece))?;
            if answer.bytes != bytes {
                let why = format!("{} bytes came instead of {bytes}", answer.bytes);
                return Err(BlocksError::Failed(io::Error::new(io::ErrorKind::InvalidData, why)));
            }
        }
        Ok(())
    }

    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        self.check_range(offset, from.len() as u64)?;
        let offsets = (offset..).step_by(self.piece_bytes());
        for (offset, piece) in offsets.zip(from.chunks(self.piece_bytes())) {
            let ask = Call { parts: &[piece], ..Call::new(Operation::WriteBlocks, [offset, 0]) };
            self.ask(&ask, &mut ResponseTarget::Nowhere)?;
        }
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.empty(Operation::WriteZeroes, offset, bytes)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.empty(Operation::Discard, offset, bytes)
    }

    fn flush(&self) -> Result<(), BlocksError> {
        self.ask(&Call::new(Operation::Flush, [0; 2]), &mut ResponseTarget::Nowhere).map(drop)
    }

    fn atomic_bytes_max(&self) -> usize {
        self.piece_bytes().min(self.session.reply().facts[1] as usize)
    }
}

fn blocks_error(refusal: &Refusal) -> BlocksError {
    match refusal.status {
        Status::OutOfRange => BlocksError::OutOfRange,
        Status::NoSpace => BlocksError::NoSpace,
        Status::Failed => BlocksError::Failed(refusal.errno()),
        _ => failed(&refusal.refused()),
    }
}

fn failed(error: &Arc<io::Error>) -> BlocksError {
    BlocksError::Failed(io::Error::new(error.kind(), Arc::clone(error)))
}
