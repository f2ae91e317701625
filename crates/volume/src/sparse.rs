//! Where a disk has room and where it has none, for whoever copies it.
//!
//! Promise: what is called a hole reads as zeros.
//! Never: changes anything, or reads the home.

use holdfast_io::Extent;

use crate::disk_file::DiskFile;
use crate::node::Body;
use crate::tree::{Errno, Seek};

/// What a file has at `offset`, and how far; nothing behind its end.
pub(crate) fn extent_in(body: &Body, offset: u64) -> Option<Extent> {
    let size_bytes = body.attributes.size_bytes;
    let next = |what| body.allocated.as_ref()?.seek(offset, what).filter(|at| *at < size_bytes);
    let is_hole = body.allocated.is_some() && next(Seek::Data) != Some(offset);
    let end = next(if is_hole { Seek::Data } else { Seek::Hole }).unwrap_or(size_bytes);
    (offset < size_bytes).then_some(Extent { end, is_hole })
}

impl DiskFile<'_> {
    /// Where the next data or hole begins, at `offset` or behind it.
    ///
    /// # Errors
    /// As the disk's; `ENXIO` if there is none before the end.
    pub fn seek(&self, offset: u64, what: Seek) -> Result<u64, Errno> {
        let size_bytes = self.blocks.size_bytes();
        let mut at = offset;
        while at < size_bytes {
            let extent = self.blocks.extent_at(at)?;
            if extent.is_hole == (what == Seek::Hole) {
                return Ok(at);
            }
            at = extent.end;
        }
        match what {
            Seek::Hole if offset < size_bytes => Ok(size_bytes),
            _ => Err(Errno::NXIO),
        }
    }
}
