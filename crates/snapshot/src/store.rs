//! Pages in the blocks of the store.
//!
//! Promise: pages that follow each other are written and read in as few steps as their blocks
//! allow; what is read is what its check says, or the page is named that is not.
//! Never: writes a block that a finished snapshot has.

use std::io;
use std::sync::Arc;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Blocks, BlocksError};
use serde::{Deserialize, Serialize};

use crate::pages::{PAGE_BYTES, Page, Pages, is_zeros};
use crate::space::Space;

/// Blocks with a free list.
pub(crate) struct Store {
    blocks: Arc<dyn Blocks>,
    pub(crate) space: Space,
}

/// Blocks in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// Why something was not stored.
#[derive(Debug)]
pub(crate) enum StoreFault {
    /// No block is free.
    Full,
    /// The blocks failed.
    Failed(io::Error),
}

impl Store {
    pub(crate) fn new(blocks: Arc<dyn Blocks>, space: Space) -> Store {
        Store { blocks, space }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        u64::from(self.space.blocks()) * PAGE_BYTES as u64
    }

    /// Puts whole pages into an image, from page `first` on. If there is no room, some of the pages
    /// have blocks with nothing in them: the image is of no use then.
    pub(crate) fn put(
        &mut self,
        pages: &mut Pages,
        first: usize,
        bytes: &[u8],
    ) -> Result<(), StoreFault> {
        for (index, bytes) in bytes.as_chunks::<PAGE_BYTES>().0.iter().enumerate() {
            let new = self.placed(pages.get(first + index), bytes)?;
            pages.set(first + index, new);
        }
        let count = bytes.len() / PAGE_BYTES;
        for (index, row) in rows(pages, first, count) {
            let bytes = &bytes[index * PAGE_BYTES..][..row.count as usize * PAGE_BYTES];
            self.write(row.first, bytes)?;
        }
        Ok(())
    }

    /// Where a page with these bytes is to be.
    fn placed(&mut self, old: Page, bytes: &[u8]) -> Result<Page, StoreFault> {
        if is_zeros(bytes) {
            if !old.is_zeros() {
                self.space.give(old.block);
            }
            return Ok(Page::default());
        }
        let block = match old.is_zeros() {
            true => self.space.take().ok_or(StoreFault::Full)?,
            false => old.block,
        };
        Ok(Page { block, check: crc32c(0, bytes) })
    }

    /// Reads whole pages of an image, from page `first` on. Returns the first page that is not what
    /// was put there, if there is one.
    pub(crate) fn read(
        &self,
        pages: &Pages,
        first: usize,
        into: &mut [u8],
    ) -> Result<Option<usize>, BlocksError> {
        into.fill(0);
        for (index, row) in rows(pages, first, into.len() / PAGE_BYTES) {
            let into = &mut into[index * PAGE_BYTES..][..row.count as usize * PAGE_BYTES];
            self.blocks.read(into, at(row.first))?;
        }
        let mut found = into.as_chunks::<PAGE_BYTES>().0.iter().zip(first..);
        Ok(found.find(|(bytes, index)| !pages.get(*index).has(*bytes)).map(|(_, index)| index))
    }

    /// Puts bytes where there is room for them, and says where.
    pub(crate) fn put_rows(&mut self, bytes: &[u8]) -> Result<Vec<Row>, StoreFault> {
        let rows = self.take_rows(bytes.len().div_ceil(PAGE_BYTES))?;
        let mut rest = bytes;
        for row in &rows {
            let (bytes, more) = rest.split_at(rest.len().min(row.count as usize * PAGE_BYTES));
            self.write(row.first, bytes)?;
            rest = more;
        }
        Ok(rows)
    }

    fn take_rows(&mut self, count: usize) -> Result<Vec<Row>, StoreFault> {
        let mut rows: Vec<Row> = Vec::new();
        for _ in 0..count {
            let Some(block) = self.space.take() else {
                self.give_rows(&rows);
                return Err(StoreFault::Full);
            };
            match rows.last_mut() {
                Some(row) if row.first + row.count == block => row.count += 1,
                _ => rows.push(Row { first: block, count: 1 }),
            }
        }
        Ok(rows)
    }

    pub(crate) fn give_rows(&mut self, rows: &[Row]) {
        rows.iter().flat_map(|row| row.blocks()).for_each(|block| self.space.give(block));
    }

    pub(crate) fn give_pages(&mut self, pages: &Pages) {
        pages.blocks().for_each(|block| self.space.give(block));
    }

    /// What was put there, and what follows it up to the end of its last block.
    pub(crate) fn read_rows(&self, rows: &[Row]) -> Result<Vec<u8>, BlocksError> {
        let mut bytes = Vec::new();
        for row in rows {
            let start = bytes.len();
            bytes.resize(start + row.count as usize * PAGE_BYTES, 0);
            self.blocks.read(&mut bytes[start..], at(row.first))?;
        }
        Ok(bytes)
    }

    /// Writes from the beginning of a block on.
    pub(crate) fn write(&self, block: u32, bytes: &[u8]) -> Result<(), BlocksError> {
        self.blocks.write(bytes, at(block))
    }
}

impl Row {
    pub(crate) fn blocks(self) -> std::ops::Range<u32> {
        self.first..self.first.saturating_add(self.count)
    }
}

fn at(block: u32) -> u64 {
    u64::from(block) * PAGE_BYTES as u64
}

/// The pages that have blocks, as rows of them: each with how many pages lie before it.
fn rows(pages: &Pages, first: usize, count: usize) -> impl Iterator<Item = (usize, Row)> {
    let block = move |index: usize| pages.get(first + index).block;
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = (next..count).find(|index| block(*index) != 0)?;
        let follows =
            |index: &usize| block(*index) as usize == block(start) as usize + index - start;
        let in_row = 1 + (start + 1..count).take_while(follows).count();
        next = start + in_row;
        Some((start, Row { first: block(start), count: in_row as u32 }))
    })
}

impl From<BlocksError> for StoreFault {
    fn from(error: BlocksError) -> StoreFault {
        StoreFault::Failed(failure(error))
    }
}

/// Blocks that fail, as a system's error.
pub(crate) fn failure(error: BlocksError) -> io::Error {
    match error {
        BlocksError::Failed(error) => error,
        other => io::Error::other(other),
    }
}
