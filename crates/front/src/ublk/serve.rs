//! Requests, answered from a disk.
//!
//! Promise: what is written comes from a copy that nobody can change meanwhile; the answer says
//! what the disk said.
//! Never: knows a queue, or a device.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use holdfast_io::{Blocks, BlocksError};
use holdfast_peers::in_hand::{Doing, InHand};

use super::parse::{Description, Extent, Refusal, Request, parse};
use super::wire::DATA_BYTES_MAX;

#[cfg(test)]
mod tests;

/// The data of one request, which the kernel has.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a> {
    /// Where it is written to and read from.
    pub(crate) file: &'a File,
    /// Its first byte in there.
    pub(crate) start: u64,
}

/// What a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Bytes that were done.
    pub(crate) bytes: i32,
    /// The disk has to be flushed first.
    pub(crate) needs_flush: bool,
}

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The kernel asked for what is not there.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk says so.
    #[error("a request failed: {0}")]
    Disk(#[from] BlocksError),
    /// The kernel has no data for the request, or takes none.
    #[error("the data of a request: {0}")]
    Data(#[from] io::Error),
}

impl Failure {
    /// What whoever asked is told.
    pub(crate) fn result(&self) -> i32 {
        match self {
            Self::Refused(Refusal::Unknown(_)) => -libc::EOPNOTSUPP,
            Self::Disk(BlocksError::NoSpace) => -libc::ENOSPC,
            _ => -libc::EIO,
        }
    }
}

/// Performs the requests of one queue.
pub(crate) struct Performer<'e> {
    blocks: &'e dyn Blocks,
    size_bytes: u64,
    buffer: Vec<u8>,
}

impl<'e> Performer<'e> {
    pub(crate) fn new(blocks: &'e dyn Blocks) -> Self {
        Self { blocks, size_bytes: blocks.size_bytes(), buffer: vec![0; DATA_BYTES_MAX] }
    }

    /// Performs what is asked, up to its flush.
    pub(crate) fn perform(
        &mut self,
        asked: &Description,
        data: Data<'_>,
    ) -> Result<Answer, Failure> {
        let _in_hand = InHand::take(Doing::Other);
        let (request, is_durable) = parse(asked, self.size_bytes)?;
        let bytes = match request {
            Request::Read(extent) => self.read(extent, data)?,
            Request::Write(extent) => self.write(extent, data)?,
            Request::Flush => return Ok(Answer { bytes: 0, needs_flush: true }),
            Request::Discard(Extent { offset, bytes }) => {
                self.blocks.discard(offset, bytes)?;
                0
            }
            Request::WriteZeroes(Extent { offset, bytes }) => {
                self.blocks.write_zeroes(offset, bytes)?;
                0
            }
        };
        Ok(Answer { bytes, needs_flush: is_durable })
    }

    fn read(&mut self, extent: Extent, data: Data<'_>) -> Result<i32, Failure> {
        let piece = &mut self.buffer[..extent.bytes as usize];
        self.blocks.read(piece, extent.offset)?;
        data.file.write_all_at(piece, data.start)?;
        Ok(extent.bytes as i32)
    }

    /// No longer than what a disk writes wholly or not at all, if its limit is the usual one.
    fn write(&mut self, extent: Extent, data: Data<'_>) -> Result<i32, Failure> {
        let piece = &mut self.buffer[..extent.bytes as usize];
        data.file.read_exact_at(piece, data.start)?;
        self.blocks.write(piece, extent.offset)?;
        Ok(extent.bytes as i32)
    }
}
