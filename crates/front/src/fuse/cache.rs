//! What the kernel may keep of files.
//!
//! Promise: the flags of an open say what the mount was configured to.
//! Never: decides for a mount; its configuration does.

use super::wire;

/// What the kernel may keep of a file's contents. Either way a `write` returns after the tree has
/// taken it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Nothing: every read and write is a request of its size, writes to one file run side by side.
    Direct,
    /// Nothing, and no page for a mapping that others see, which the kernel would keep for as long
    /// as the mapping is there: others than this mount write what the tree has. Such a mapping is
    /// refused, with `ENODEV`.
    Nowhere,
    /// Pages: repeated reads cost nothing, nor do opens where the tree does not count them. A write
    /// is copied twice, and goes out as one request if it starts where a page does, lies within
    /// one, or goes past the cache (`O_DIRECT`), and in parts of whole pages otherwise.
    WriteThrough,
}

impl Cache {
    pub(super) fn open_flags(self) -> u32 {
        match self {
            Self::Direct | Self::Nowhere => {
                wire::FOPEN_DIRECT_IO | wire::FOPEN_PARALLEL_DIRECT_WRITES
            }
            Self::WriteThrough => wire::FOPEN_KEEP_CACHE,
        }
    }
}
