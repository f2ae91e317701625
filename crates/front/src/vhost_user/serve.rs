//! Requests, answered from a disk.
//!
//! Promise: a request whose memory cannot be trusted is refused before the disk is asked; what is
//! written comes from a copy that no guest can change; the answer says what the disk said.
//! Never: knows a queue, or a descriptor of the system.

use super::chain::Chain;
use super::memory::{Guest, Lost};
use super::parse::{Extent, Refusal, Request, parse, parse_range};
use super::wire::{HEADER_BYTES, ID_BYTES, RANGE_BYTES, RANGES_MAX, status};
use holdfast_io::{Blocks, BlocksError};
use holdfast_peers::in_hand::{Doing, InHand};

/// Data goes through a buffer of this size, from the guest to the disk and back.
const BUFFER_BYTES: usize = 1 << 20;

const _: () = assert!(RANGES_MAX as usize * RANGE_BYTES <= BUFFER_BYTES);

/// A disk and what a guest is told of it.
pub(crate) struct Disk<'e> {
    pub(crate) blocks: &'e dyn Blocks,
    pub(crate) size_bytes: u64,
    id: [u8; ID_BYTES],
    /// The longest piece of a write: what the disk would divide is divided where it would.
    write_piece_bytes: usize,
}

/// What a request came to.
pub(crate) struct Answer {
    pub(crate) status: u8,
    /// Bytes that the guest was given, without the status.
    pub(crate) given_bytes: u32,
    /// The disk has to be flushed first.
    pub(crate) needs_flush: bool,
}

/// Why a request was not done.
pub(crate) enum Failure {
    /// The guest asked for what is not there.
    Refused(Refusal),
    /// The disk says so.
    Disk(BlocksError),
    /// The guest's memory is gone, or has no room for an answer: its queue cannot go on.
    Memory,
}

impl From<Lost> for Failure {
    fn from(Lost: Lost) -> Self {
        Self::Memory
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<BlocksError> for Failure {
    fn from(error: BlocksError) -> Self {
        Self::Disk(error)
    }
}

impl<'e> Disk<'e> {
    pub(crate) fn new(blocks: &'e dyn Blocks, name: &str) -> Self {
        let mut id = [0; ID_BYTES];
        let bytes = name.len().min(ID_BYTES);
        id[..bytes].copy_from_slice(&name.as_bytes()[..bytes]);
        let atomic = blocks.atomic_bytes_max().clamp(1, BUFFER_BYTES);
        let write_piece_bytes = BUFFER_BYTES / atomic * atomic;
        Self { blocks, size_bytes: blocks.size_bytes(), id, write_piece_bytes }
    }
}

/// Performs requests of one queue.
pub(crate) struct Performer<'e> {
    disk: &'e Disk<'e>,
    buffer: Vec<u8>,
}

impl<'e> Performer<'e> {
    pub(crate) fn new(disk: &'e Disk<'e>) -> Self {
        Self { disk, buffer: vec![0; BUFFER_BYTES] }
    }

    /// Performs the request of `chain`, up to its flush. With `write_through` a change needs one.
    pub(crate) fn perform(
        &mut self,
        memory: &Guest,
        chain: &Chain,
        write_through: bool,
    ) -> Result<Answer, Failure> {
        let _in_hand = InHand::take(Doing::Other);
        let size_bytes = self.disk.size_bytes;
        let mut header = [0; HEADER_BYTES];
        let room = chain.to_guest.bytes().checked_sub(1).ok_or(Failure::Memory)?;
        let data = chain.from_guest.bytes().checked_sub(HEADER_BYTES as u64);
        let data = data.ok_or(Refusal::Length)?;
        chain.from_guest.read(memory, 0, &mut header)?;
        let (given_bytes, needs_flush) = match parse(&header, data, room, size_bytes)? {
            Request::Read(extent) => (self.read(memory, chain, extent)?, false),
            Request::Write(extent) => (self.write(memory, chain, extent)?, write_through),
            Request::Flush => (0, true),
            Request::GetId(bytes) => {
                chain.to_guest.write(memory, 0, &self.disk.id[..bytes])?;
                (bytes as u32, false)
            }
            Request::Discard(count) => (self.clear(memory, chain, count, true)?, write_through),
            Request::WriteZeroes(count) => {
                (self.clear(memory, chain, count, false)?, write_through)
            }
        };
        Ok(Answer { status: status::OK, given_bytes, needs_flush })
    }

    fn read(&mut self, memory: &Guest, chain: &Chain, extent: Extent) -> Result<u32, Failure> {
        let mut done = 0;
        while done < extent.bytes {
            let bytes = (extent.bytes - done).min(BUFFER_BYTES as u64) as usize;
            let piece = &mut self.buffer[..bytes];
            self.disk.blocks.read(piece, extent.offset + done)?;
            chain.to_guest.write(memory, done, piece)?;
            done += bytes as u64;
        }
        Ok(u32::try_from(extent.bytes).unwrap_or(u32::MAX))
    }

    fn write(&mut self, memory: &Guest, chain: &Chain, extent: Extent) -> Result<u32, Failure> {
        let mut done = 0;
        while done < extent.bytes {
            let bytes = (extent.bytes - done).min(self.disk.write_piece_bytes as u64) as usize;
            let piece = &mut self.buffer[..bytes];
            chain.from_guest.read(memory, HEADER_BYTES as u64 + done, piece)?;
            self.disk.blocks.write(piece, extent.offset + done)?;
            done += bytes as u64;
        }
        Ok(0)
    }

    /// Makes ranges read as zeros, if every one of them is in order.
    fn clear(
        &mut self,
        memory: &Guest,
        chain: &Chain,
        count: usize,
        is_discard: bool,
    ) -> Result<u32, Failure> {
        let table = &mut self.buffer[..count * RANGE_BYTES];
        chain.from_guest.read(memory, HEADER_BYTES as u64, table)?;
        let (ranges, _) = table.as_chunks();
        let parse = |range| parse_range(range, is_discard, self.disk.size_bytes);
        let wrong = ranges.iter().find_map(|range| parse(range).err());
        wrong.map_or(Ok(()), Err)?;
        for range in ranges {
            let (Extent { offset, bytes }, gives_back) = parse(range)?;
            match gives_back {
                true => self.disk.blocks.discard(offset, bytes)?,
                false => self.disk.blocks.write_zeroes(offset, bytes)?,
            }
        }
        Ok(0)
    }
}
