//! Sectors of a disk, in which some protocols count.
//!
//! Promise: an extent that [`Extent::at`] made lies on the disk.
//! Never: knows a protocol.

/// Bytes of a sector, whatever the disk writes at once.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Bytes of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where they begin.
    pub offset: u64,
    /// How many they are.
    pub bytes: u64,
}

impl Extent {
    /// What begins at a sector, if it lies on a disk of `size_bytes`. A last piece that is no whole
    /// sector is not part of what users see.
    pub(crate) fn at(sector: u64, bytes: u64, size_bytes: u64) -> Option<Extent> {
        let offset = sector.checked_mul(SECTOR_BYTES)?;
        let end = offset.checked_add(bytes)?;
        (end <= size_bytes - size_bytes % SECTOR_BYTES).then_some(Extent { offset, bytes })
    }
}
