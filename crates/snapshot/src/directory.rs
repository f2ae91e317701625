//! The directory: the snapshots that are there, at the beginning of the store.
//!
//! Promise: it is replaced in one step; one that decodes was written by this version. A snapshot is
//! there from the moment that a directory names it.
//! Never: says where a page is; an index does.

use holdfast_io::checksum::crc32c;
use holdfast_io::{Blocks, BlocksError};
use serde::{Deserialize, Serialize};

use crate::error::OpenError;
use crate::pages::PAGE_BYTES;
use crate::request::ImageKind;
use crate::store::{Row, failure};

/// Blocks of the store that are the directory's: few enough to be written in one step.
pub(crate) const DIRECTORY_BLOCKS: u32 = 64;

const DIRECTORY_BYTES: usize = DIRECTORY_BLOCKS as usize * PAGE_BYTES;
/// The least bytes of a store: as many for snapshots as for their directory.
pub const STORE_BYTES_MIN: u64 = 2 * DIRECTORY_BYTES as u64;

const MAGIC: [u8; 8] = *b"HFSNAPS\0";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 20;

/// All that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Directory {
    pub(crate) snapshots: Vec<Entry>,
    /// The snapshot to which the disks are being restored.
    pub(crate) restoring: Option<u64>,
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) taken_ms: u64,
    pub(crate) note: String,
    pub(crate) images: Vec<ImageEntry>,
}

/// One of its images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImageEntry {
    pub(crate) name: String,
    pub(crate) kind: ImageKind,
    pub(crate) size_bytes: u64,
    /// The check of its index.
    pub(crate) check: u32,
    /// Where its index is.
    pub(crate) index: Vec<Row>,
}

impl Directory {
    /// The directory of a store; an empty one of a store to which nothing was ever written.
    pub(crate) fn read(blocks: &dyn Blocks) -> Result<Directory, OpenError> {
        let mut bytes = vec![0; DIRECTORY_BYTES];
        let (size_bytes, least_bytes) = (blocks.size_bytes(), STORE_BYTES_MIN);
        if size_bytes < least_bytes {
            return Err(OpenError::TooSmall { size_bytes, least_bytes });
        }
        blocks.read(&mut bytes, 0).map_err(|error| OpenError::Failed(failure(error)))?;
        match bytes[..HEAD_BYTES] == [0; HEAD_BYTES] {
            true => Ok(Directory::default()),
            false => Directory::decode(&bytes),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Directory, OpenError> {
        let number = |at: usize| {
            let bytes = bytes[at..].first_chunk().expect("a directory has a head");
            u32::from_le_bytes(*bytes)
        };
        if bytes[..8] != MAGIC {
            return Err(OpenError::Damaged);
        }
        if number(8) != VERSION {
            return Err(OpenError::OtherVersion { found: number(8), known: VERSION });
        }
        let body = usize::try_from(number(12)).ok().and_then(|length| {
            bytes[HEAD_BYTES..].get(..length).filter(|body| crc32c(0, body) == number(16))
        });
        rmp_serde::from_slice(body.ok_or(OpenError::Damaged)?).map_err(|_| OpenError::Damaged)
    }

    /// As it is written; none if it is too large.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let body = rmp_serde::to_vec_named(self).expect("plain data");
        let length = u32::try_from(body.len()).ok()?;
        let numbers = [VERSION, length, crc32c(0, &body)].map(u32::to_le_bytes);
        let bytes = [&MAGIC[..], &numbers.concat(), &body].concat();
        (bytes.len() <= DIRECTORY_BYTES).then_some(bytes)
    }

    pub(crate) fn find(&self, id: u64) -> Option<&Entry> {
        self.snapshots.iter().find(|entry| entry.id == id)
    }
}

/// Replaces the directory, in one step.
pub(crate) fn write(blocks: &dyn Blocks, encoded: &[u8]) -> Result<(), BlocksError> {
    assert!(encoded.len() <= blocks.atomic_bytes_max(), "it is written wholly or not at all");
    blocks.write(encoded, 0)
}

#[cfg(test)]
mod tests;
