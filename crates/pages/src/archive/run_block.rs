//! A block of a run: its records, as they are written and read, compressed or not.
//!
//! Byte table: FORMAT.md, "Run".
//!
//! Promise: a block is compressed only where that saves enough, and comes back as it was; what
//! claims to be longer than its bytes can make it is refused before memory is taken for it.
//! Never: touches a file.

use std::fmt;

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use crate::archive::run_format::CHECK_BYTES;

/// The first version whose blocks may be compressed.
pub(crate) const COMPRESSED: u16 = 2;
/// What precedes the records of a block of that version: its check, and how long they are when they
/// are compressed, or 0.
pub(crate) const HEAD_BYTES: usize = CHECK_BYTES + 4;
/// One of so many parts has to be saved.
const PARTS: usize = 8;
/// How many bytes LZ4 makes of one at most: a token counts on by 255 a byte.
const GROWTH_MAX: usize = 255;

/// How the records of runs are compressed. Whatever is chosen, a run is read as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// By LZ4, a block of some KiB, if that saves an eighth of it.
    Lz4,
}

/// The memory in which blocks are compressed.
#[derive(Default)]
pub(crate) struct Packer {
    table: CompressTable,
    packed: Vec<u8>,
}

impl Packer {
    /// Compresses these records in their place, if that saves enough. Returns what their head tells
    /// of it.
    pub(crate) fn pack(&mut self, out: &mut Vec<u8>, records: usize) -> u32 {
        let whole = out.len() - records;
        self.packed.resize(get_maximum_output_size(whole), 0);
        let packed = compress_into_with_table(&out[records..], &mut self.packed, &mut self.table);
        let bytes = packed.expect("there is room for the worst case");
        let Some(told) = u32::try_from(whole).ok().filter(|_| bytes <= whole - whole / PARTS)
        else {
            return 0;
        };
        out.truncate(records);
        out.extend_from_slice(&self.packed[..bytes]);
        told
    }
}

/// The memory in which blocks are read.
#[derive(Default)]
pub(crate) struct Block {
    stored: Vec<u8>,
    unpacked: Vec<u8>,
    /// Where in `stored` the records begin; none if they are in `unpacked`.
    begin: Option<usize>,
}

impl Block {
    /// Where a block of so many bytes is read into. Whatever it had is gone.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.stored.resize(bytes, 0);
        self.begin = Some(bytes);
        &mut self.stored
    }

    /// Looks at what was read, of a run of this version; none if it is not what was written.
    pub(crate) fn open(&mut self, version: u16, check: impl Fn(&[u8]) -> u32) -> Option<()> {
        let (told, rest) = self.stored.split_first_chunk::<CHECK_BYTES>()?;
        if u32::from_le_bytes(*told) != check(rest) {
            return None;
        }
        if version < COMPRESSED {
            self.begin = Some(CHECK_BYTES);
            return Some(());
        }
        let (whole, packed) = rest.split_first_chunk()?;
        match u32::from_le_bytes(*whole) as usize {
            0 => self.begin = Some(HEAD_BYTES),
            whole if whole / GROWTH_MAX > packed.len() => return None,
            whole => {
                self.unpacked.resize(whole, 0);
                let bytes = decompress_into(packed, &mut self.unpacked).ok()?;
                self.begin = None;
                return (bytes == whole).then_some(());
            }
        }
        Some(())
    }

    /// The records of the block that was opened last; nothing if it was not what was written.
    pub(crate) fn records(&self) -> &[u8] {
        self.begin.map_or(&self.unpacked, |begin| &self.stored[begin..])
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Block").field("bytes", &self.records().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
