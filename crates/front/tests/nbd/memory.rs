//! A disk in this process's memory.

use std::sync::RwLock;

use holdfast_io::{Blocks, BlocksError, Extent};

pub(crate) struct MemoryBlocks {
    bytes: RwLock<Vec<u8>>,
    atomic_bytes_max: usize,
    flush: Box<OnFlush>,
    /// Where it says that it has room; all over, if there are none.
    extents: Vec<Extent>,
}

/// What a flush of a disk does.
type OnFlush = dyn Fn(&MemoryBlocks) + Send + Sync;

impl MemoryBlocks {
    pub(crate) fn new(bytes: usize, atomic_bytes_max: usize) -> Self {
        let (bytes, extents) = (RwLock::new(vec![0; bytes]), Vec::new());
        Self { bytes, atomic_bytes_max, flush: Box::new(|_| ()), extents }
    }

    pub(crate) fn with_flush(self, flush: impl Fn(&Self) + Send + Sync + 'static) -> Self {
        Self { flush: Box::new(flush), ..self }
    }

    pub(crate) fn with_extents(self, extents: Vec<Extent>) -> Self {
        Self { extents, ..self }
    }

    pub(crate) fn contents(&self) -> Vec<u8> {
        self.bytes.read().unwrap().clone()
    }
}

/// Where in memory a range is. The front end has checked it, so a wrong one is a failure of it.
fn range(offset: u64, bytes: usize) -> std::ops::Range<usize> {
    let start = usize::try_from(offset).unwrap();
    start..start + bytes
}

impl Blocks for MemoryBlocks {
    fn size_bytes(&self) -> u64 {
        self.bytes.read().unwrap().len() as u64
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        into.copy_from_slice(&self.bytes.read().unwrap()[range(offset, into.len())]);
        Ok(())
    }

    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        self.bytes.write().unwrap()[range(offset, from.len())].copy_from_slice(from);
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.bytes.write().unwrap()[range(offset, bytes as usize)].fill(0);
        Ok(())
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.write_zeroes(offset, bytes)
    }

    fn extent_at(&self, offset: u64) -> Result<Extent, BlocksError> {
        let everything = Extent { end: self.size_bytes(), is_hole: false };
        Ok(*self.extents.iter().find(|it| it.end > offset).unwrap_or(&everything))
    }

    fn flush(&self) -> Result<(), BlocksError> {
        (self.flush)(self);
        Ok(())
    }

    fn atomic_bytes_max(&self) -> usize {
        self.atomic_bytes_max
    }
}
