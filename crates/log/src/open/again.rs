//! Writing once more what a device is not proved to have.
//!
//! After a sync that failed, a system may show what it has not written, and answer the next sync
//! with a success that means nothing. So an open takes nothing for durable because it could be
//! read: what lies behind the last watermark is written once more, and then synced. It may have
//! been acknowledged, and a power cut may destroy a block while it is written: so a few blocks at a
//! time are kept in a file beside the log until they have arrived.
//!
//! Byte table: FORMAT.md, "Again".
//!
//! Promise: whenever the power goes, each block is where it was, or in the file, whole.
//! Never: changes what is read.

use std::io;
use std::path::Path;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenFile, OpenHow};

use crate::error::{FileFault, OpenError};
use crate::format::buffer::Buffer;
use crate::format::bytes::{array_at, u32_at, u64_at};
use crate::format::catalogue::Catalogue;

mod write;

/// Name of the file.
pub(crate) const AGAIN: &str = "again";

const MAGIC: u32 = 0x4146_4648;
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 48;
/// Most that is written at once: the file is this long, and its head, and no longer.
const PIECE_BYTES: u64 = 64 << 10;

/// Blocks, and where they belong.
pub(crate) struct Again {
    pub(crate) at: Lsn,
    pub(crate) bytes: Buffer,
}

impl Again {
    /// What is to be written once more, if anything is. A file that is not whole was being written:
    /// the blocks are where they were.
    pub(crate) fn load(
        files: &dyn Files,
        catalogue: &Catalogue,
    ) -> Result<Option<Again>, OpenError> {
        let file = match files.open(Path::new(AGAIN), OpenHow::default()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(OpenError::Io)?,
        };
        let mut bytes = vec![0; HEAD_BYTES + PIECE_BYTES as usize];
        let got = file.read_full_at(&mut bytes, 0).map_err(OpenError::Io)?;
        let Some((identity, again)) = decode(&bytes[..got]) else { return Ok(None) };
        let fault = match identity == catalogue.identity {
            true if again.lies_in(catalogue) => return Ok(Some(again)),
            true => FileFault::Contents,
            false => FileFault::Foreign,
        };
        Err(OpenError::File { name: AGAIN.to_owned(), fault })
    }

    /// Makes the file.
    pub(crate) fn keep_room(files: &dyn Files) -> io::Result<()> {
        let file = open_file(files)?;
        file.write_all_at(&vec![0; HEAD_BYTES + PIECE_BYTES as usize], 0)?;
        file.sync_data()
    }

    /// Says that all has arrived.
    pub(crate) fn clear(files: &dyn Files) -> io::Result<()> {
        let file = open_file(files)?;
        file.write_all_at(&[0; HEAD_BYTES], 0)?;
        file.sync_data()
    }

    /// Lays it over blocks that were read, which begin at `start`.
    pub(crate) fn overlay(&self, start: Lsn, blocks: &mut [u8]) {
        let end = start.advance(blocks.len() as u64);
        let own_end = self.at.advance(self.bytes.bytes().len() as u64);
        let (from, to) = (self.at.max(start), own_end.min(end));
        if from < to {
            let own = &self.bytes.bytes()[from.since(self.at) as usize..to.since(self.at) as usize];
            blocks[from.since(start) as usize..to.since(start) as usize].copy_from_slice(own);
        }
    }

    /// Whether a log with this catalogue can have it.
    fn lies_in(&self, catalogue: &Catalogue) -> bool {
        let bytes = self.bytes.bytes().len() as u64;
        let end = self.at.get().checked_add(bytes);
        let last = Lsn(self.at.get().saturating_add(bytes - 1));
        catalogue.covers(self.at) && end.is_some() && {
            self.at.get() / catalogue.segment_bytes == last.get() / catalogue.segment_bytes
        }
    }
}

/// The file as bytes: its head, and these blocks.
pub(crate) fn encode(identity: &[u8; 16], at: Lsn, blocks: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + blocks.len());
    bytes.extend_from_slice(&MAGIC.to_le_bytes());
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(blocks.len() as u32).to_le_bytes());
    bytes.extend_from_slice(identity);
    bytes.extend_from_slice(&at.get().to_le_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(blocks);
    let check = crc32c(0, &bytes[12..]);
    bytes[8..12].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Whose it is, and what.
fn decode(bytes: &[u8]) -> Option<([u8; 16], Again)> {
    if bytes.len() < HEAD_BYTES || u32_at(bytes, 0) != MAGIC || u32_at(bytes, 4) != VERSION {
        return None;
    }
    let (length, at) = (u32_at(bytes, 12) as usize, Lsn(u64_at(bytes, 32)));
    let end = HEAD_BYTES.checked_add(length)?;
    let said = bytes.get(12..end).filter(|said| u32_at(bytes, 8) == crc32c(0, said));
    let blocks = length > 0 && length.is_multiple_of(BLOCK_BYTES as usize);
    said.filter(|_| blocks && at.is_aligned(BLOCK_BYTES))?;
    let mut buffer = Buffer::zeroed(length);
    buffer.bytes_mut().copy_from_slice(&bytes[HEAD_BYTES..end]);
    Some((array_at(bytes, 16), Again { at, bytes: buffer }))
}

fn open_file(files: &dyn Files) -> io::Result<std::sync::Arc<dyn OpenFile>> {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    files.open(Path::new(AGAIN), how)
}
