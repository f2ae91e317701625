//! What the clients of a disk may ask: ranges of bytes to be read, written, emptied, flushed.
//!
//! Promise: a request is done before it is answered, and ranges are checked before anything is
//! done; what is written at once is there wholly or not at all, as the disk has it.
//! Never: answers with bytes that are not the disk's. Requests may be repeated: nothing here knows
//! them again.

use std::sync::Arc;

use holdfast_client::protocol::{Operation, Status, TRANSFER_BYTES_MAX, ZEROES_BYTES_MAX};
use holdfast_io::{Blocks, BlocksError};
use holdfast_memory::queue::Response;

use crate::handler::{Exchange, Handler, Refusal, done, errno_of};
use crate::presence::Presence;
use crate::words;

/// The most bytes that one request reads or writes: as many as are written at once.
pub(crate) fn transfer_bytes_max(blocks: &dyn Blocks) -> u64 {
    (blocks.atomic_bytes_max() as u64).clamp(1, TRANSFER_BYTES_MAX)
}

/// One session with a disk.
pub(crate) struct DiskHandler {
    blocks: Arc<dyn Blocks>,
    _presence: Presence,
}

impl DiskHandler {
    pub(crate) fn new(blocks: Arc<dyn Blocks>, presence: Presence) -> DiskHandler {
        DiskHandler { blocks, _presence: presence }
    }

    fn read(&self, offset: u64, exchange: &mut Exchange<'_>) -> Result<u32, Refusal> {
        let mut bytes = std::mem::take(&mut exchange.bytes.answer);
        bytes.resize(exchange.request.bytes as usize, 0);
        let read = self.blocks.read(&mut bytes, offset).map_err(refusal_of);
        let brought = read.and_then(|()| exchange.bring(&bytes));
        exchange.bytes.answer = bytes;
        brought
    }

    fn empty(&self, operation: Operation, offset: u64, bytes: u64) -> Result<(), Refusal> {
        if bytes > ZEROES_BYTES_MAX {
            return Err((Status::TooLarge, bytes));
        }
        let emptied = match operation {
            Operation::Discard => self.blocks.discard(offset, bytes),
            _ => self.blocks.write_zeroes(offset, bytes),
        };
        emptied.map_err(refusal_of)
    }
}

impl Handler for DiskHandler {
    fn handle(
        &mut self,
        operation: Operation,
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Response>, Refusal> {
        let [offset, bytes] = exchange.request.argument;
        if u64::from(exchange.request.bytes) > transfer_bytes_max(&*self.blocks) {
            return Err((Status::TooLarge, exchange.request.bytes.into()));
        }
        let mut brought = 0;
        match operation {
            Operation::ReadBlocks => brought = self.read(offset, exchange)?,
            Operation::WriteBlocks => {
                exchange.copy_payload();
                self.blocks.write(&exchange.bytes.payload, offset).map_err(refusal_of)?;
            }
            Operation::WriteZeroes | Operation::Discard => self.empty(operation, offset, bytes)?,
            Operation::Flush => self.blocks.flush().map_err(refusal_of)?,
            _ => return Err((Status::BadOperation, operation as u64)),
        }
        exchange.words.count(words::REQUESTS);
        Ok(Some(Response { bytes: brought, ..done([0; 2]) }))
    }
}

fn refusal_of(error: BlocksError) -> Refusal {
    match error {
        BlocksError::OutOfRange => (Status::OutOfRange, 0),
        BlocksError::NoSpace => (Status::NoSpace, 0),
        BlocksError::Failed(error) => (Status::Failed, errno_of(&error)),
        _ => (Status::Failed, 0),
    }
}
