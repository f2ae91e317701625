//! Why there is no disk or cache, and what to do about it.
//!
//! Promise: another kind, another version, another size and damage are told apart, each with what
//! the caller can do.
//! Never: means that a block of an existing disk was changed.

use std::fmt;

use holdfast_memory::{AttachError, CreateError};

use crate::disk::DiskFault;

/// Why [`crate::Vdisk::create`] made nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum CreateVdiskError {
    /// No disk has so many bytes. Ask for a multiple of 4096, less than 16 TiB.
    BadSize {
        /// What was asked for.
        size_bytes: u64,
    },
    /// There is no memory for it.
    Region(CreateError),
}

/// Why [`crate::Vdisk::attach`] gave no disk.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttachVdiskError {
    /// The region cannot be had.
    Region(AttachError),
    /// The region holds something else. Correct the configuration.
    NoDisk {
        /// What it holds, by the name its maker gave it; zeros for the ring of a log.
        found: [u8; 8],
    },
    /// The disk is whole, and of a version this program does not know. Use the program that made
    /// it.
    OtherVersion {
        /// The version found.
        found: u32,
        /// The version this program knows.
        known: u32,
    },
    /// The disk has another size than expected. Attach it with the size found; a disk of another
    /// size is a new one.
    OtherSize {
        /// Bytes it has.
        found: u64,
        /// Bytes it was expected to have.
        asked: u64,
    },
    /// The header is damaged. Remove the region, make a new disk, restore what was on it.
    DamagedHeader,
    /// The disk can be read no more, because part of what says where its blocks are is damaged.
    /// Remove the region, make a new disk, restore what was on it.
    Damaged(DiskFault),
}

/// Why [`crate::BlockCache::attach`] gave no cache. In no case is anything lost: the home has it.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttachCacheError {
    /// The region cannot be had.
    Region(AttachError),
    /// The region holds something else. Correct the configuration.
    NoCache {
        /// What it holds, by the name its maker gave it; zeros for the ring of a log.
        found: [u8; 8],
    },
    /// It is the cache of something else. Correct the configuration, or remove it.
    OtherOwner {
        /// Whose it is.
        found: [u8; 16],
    },
    /// The cache is of a version this program does not know. Remove the region, make another.
    OtherVersion {
        /// The version found.
        found: u32,
        /// The version this program knows.
        known: u32,
    },
    /// The header is damaged. Remove the region, make another.
    Damaged,
}

impl fmt::Display for CreateVdiskError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadSize { size_bytes } => write!(
                out,
                "no disk has {size_bytes} bytes: ask for a multiple of 4096, less than 16 TiB"
            ),
            Self::Region(error) => error.fmt(out),
        }
    }
}

impl fmt::Display for AttachVdiskError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Region(error) => error.fmt(out),
            Self::NoDisk { found } => write!(out, "the region holds no disk: {}", Named(found)),
            Self::OtherVersion { found, known } => {
                write!(out, "the disk has format version {found}, this program knows {known}")
            }
            Self::OtherSize { found, asked } => write!(
                out,
                "the disk has {found} bytes, not {asked}: a disk of another size is a new one"
            ),
            Self::DamagedHeader => write!(
                out,
                "the disk's header is damaged: remove the region, make a new disk, restore it"
            ),
            Self::Damaged(fault) => {
                write!(out, "{fault}: remove the region, make a new disk, restore it")
            }
        }
    }
}

impl fmt::Display for AttachCacheError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Region(error) => error.fmt(out),
            Self::NoCache { found } => write!(out, "the region holds no cache: {}", Named(found)),
            Self::OtherOwner { .. } => {
                out.write_str("it is the cache of something else: correct the configuration")
            }
            Self::OtherVersion { found, known } => write!(
                out,
                "the cache has format version {found}, this program knows {known}: remove it"
            ),
            Self::Damaged => out.write_str("the cache's header is damaged: remove it"),
        }
    }
}

/// What else a region holds.
struct Named<'a>(&'a [u8; 8]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [0, 0, 0, 0, 0, 0, 0, 0] => out.write_str("it belongs to a log"),
            other => write!(out, "it says {}", other.escape_ascii()),
        }
    }
}

impl std::error::Error for CreateVdiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Region(error) => Some(error),
            Self::BadSize { .. } => None,
        }
    }
}

impl std::error::Error for AttachCacheError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Region(error) => Some(error),
            _ => None,
        }
    }
}

impl std::error::Error for AttachVdiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Region(error) => Some(error),
            Self::Damaged(fault) => Some(fault),
            _ => None,
        }
    }
}
