//! One open file whose blocks are cached.
//!
//! Promise: a read gives what the home has, and asks it only for blocks that the cache misses; a
//! change makes the cache forget first, then changes the home, then leaves what that came to.
//! Never: hides an error or a short transfer of the home.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use holdfast_io::{Allocation, Change, Metadata, OpenFile, Seek, Space};

use crate::block_cache::BlockCache;
use crate::cache::{Block, Miss};
use crate::header::BLOCK_BYTES;
use crate::parts::{Part, parts};

/// Blocks that are read from the home at once, at most.
const READ_BLOCKS_MAX: usize = 256;

/// The home's open file, and the cache before it.
pub(crate) struct CachedFile {
    home: Arc<dyn OpenFile>,
    cache: Arc<BlockCache>,
}

/// A part of a read that the cache does not have.
struct Missing {
    part: Part,
    /// Where it goes in the caller's bytes.
    into: Range<usize>,
    miss: Miss,
}

impl CachedFile {
    pub(crate) fn new(home: Arc<dyn OpenFile>, cache: Arc<BlockCache>) -> CachedFile {
        CachedFile { home, cache }
    }

    /// Fills a part from the cache.
    fn look(&self, part: Part, into: &mut [u8]) -> Result<(), Miss> {
        if let Ok(block) = <&mut Block>::try_from(&mut *into) {
            return self.cache.blocks().look(part.block, block);
        }
        let mut block = [0; BLOCK_BYTES];
        self.cache.blocks().look(part.block, &mut block)?;
        into.copy_from_slice(&block[part.range()]);
        Ok(())
    }

    /// Fills parts that follow each other from the home, and the cache with their blocks. Where in
    /// the caller's bytes the file ends, if it does before their end.
    fn read_home(&self, row: &[Missing], into: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(first) = row.first() else { return Ok(None) };
        let mut blocks = Aligned::of(row.len() * BLOCK_BYTES);
        let blocks = blocks.bytes();
        let found = self.home.read_full_at(blocks, first.part.block * BLOCK_BYTES as u64)?;
        for (missing, block) in row.iter().zip(blocks[..found].chunks(BLOCK_BYTES)) {
            if block.len() == BLOCK_BYTES {
                self.cache.blocks().fill(missing.miss, missing.part.block, block);
            }
        }
        for (missing, at) in row.iter().zip((0..).step_by(BLOCK_BYTES)) {
            let start = at + missing.part.skip;
            let bytes = missing.part.bytes.min(found.saturating_sub(start));
            into[missing.into.start..][..bytes].copy_from_slice(&blocks[start..start + bytes]);
            if bytes < missing.part.bytes {
                return Ok(Some(missing.into.start + bytes));
            }
        }
        Ok(None)
    }

    /// Changes some bytes of the home, with what the call for it is.
    fn write_with(
        &self,
        from: &[u8],
        offset: u64,
        write: impl FnOnce(&dyn OpenFile) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let blocks = touched(offset, from.len() as u64);
        let partial = parts(offset, from.len()).filter(|part| !part.is_whole());
        let partial: Vec<u64> = partial.map(|part| part.block).collect();
        let mut change = self.cache.blocks().change_with_edges(blocks, &partial);
        let bytes = write(&*self.home)?;
        for part in parts(offset, bytes) {
            let at = (part.offset() - offset) as usize;
            let written = &from[at..at + part.bytes];
            match part.is_whole() {
                true => change.fill(part.block, written),
                false => change.patch(part.block, part.skip, written),
            }
        }
        Ok(bytes)
    }
}

impl OpenFile for CachedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let (mut row, mut at) = (Vec::<Missing>::new(), 0);
        for part in parts(offset, into.len()) {
            let range = at..at + part.bytes;
            at = range.end;
            let Err(miss) = self.look(part, &mut into[range.clone()]) else { continue };
            let follows = row.last().is_some_and(|last| last.part.block + 1 == part.block);
            if !follows || row.len() == READ_BLOCKS_MAX {
                if let Some(end) = self.read_home(&row, into)? {
                    return Ok(end);
                }
                row.clear();
            }
            row.push(Missing { part, into: range, miss });
        }
        Ok(self.read_home(&row, into)?.unwrap_or(at))
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.write_with(from, offset, |home| home.write_at(from, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        let epoch = self.cache.blocks().begin_sync();
        match self.home.sync_data() {
            Ok(()) => self.cache.blocks().synced(epoch),
            Err(error) => {
                self.cache.blocks().sync_failed();
                return Err(error);
            }
        }
        Ok(())
    }

    fn write_through_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.write_with(from, offset, |home| home.write_through_at(from, offset))
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let _change = self.cache.blocks().change(bytes / BLOCK_BYTES as u64..u64::MAX);
        self.home.set_len(bytes)
    }

    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.home.reserve(offset, bytes)
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let _change = self.cache.blocks().change(touched(offset, bytes));
        self.home.punch(offset, bytes)
    }

    fn zero(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let _change = self.cache.blocks().change(touched(offset, bytes));
        self.home.zero(offset, bytes)
    }

    fn seek(&self, offset: u64, what: Seek) -> io::Result<Option<u64>> {
        self.home.seek(offset, what)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.home.metadata()
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        self.home.change(change)
    }

    fn space(&self) -> io::Result<Space> {
        self.home.space()
    }

    fn allocation(&self) -> io::Result<Allocation> {
        self.home.allocation()
    }

    fn writes_in_place(&self) -> bool {
        self.home.writes_in_place()
    }
}

/// The blocks that a range touches; those behind the last byte that a file can have do not matter.
fn touched(offset: u64, bytes: u64) -> Range<u64> {
    let block_bytes = BLOCK_BYTES as u64;
    offset / block_bytes..offset.saturating_add(bytes).div_ceil(block_bytes)
}

/// Bytes that begin where a transfer past the page cache may begin.
struct Aligned {
    memory: Vec<u8>,
    bytes: usize,
}

impl Aligned {
    fn of(bytes: usize) -> Aligned {
        Aligned { memory: vec![0; bytes + BLOCK_BYTES], bytes }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.memory.as_ptr().align_offset(BLOCK_BYTES);
        &mut self.memory[start..][..self.bytes]
    }
}
