//! Why something was not done, and what to do about it.
//!
//! Promise: what the caller asked wrongly, what there is no room for, and damage are told apart.
//! Never: says less than the numbers.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// Why there are no snapshots to be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The store is smaller than its directory. Make a larger one.
    TooSmall {
        /// Bytes it has.
        size_bytes: u64,
        /// The least.
        least_bytes: u64,
    },
    /// It has something else than snapshots, or its directory is damaged. Nothing was changed; make
    /// a new one.
    Damaged,
    /// It was written in a version that this program does not know. Use the program that made it.
    OtherVersion {
        /// The version found.
        found: u32,
        /// The version this program knows.
        known: u32,
    },
    /// The blocks cannot be read.
    Failed(io::Error),
}

/// Why a request has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum RespondError {
    /// The bytes are no request. Nothing was done; correct the program.
    Malformed,
    /// The store or a disk failed. Whether the request was done is not known.
    Failed(io::Error),
}

/// Why a request was refused. Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Refusal {
    /// No snapshot has this number. See the list.
    NoSnapshot,
    /// This client makes no snapshot of this number; the server was perhaps replaced meanwhile.
    /// Begin it again.
    NoDraft,
    /// A snapshot of this name is there. Remove it, or choose another name.
    NameTaken,
    /// A name has 1 to 64 letters, digits, `-`, `_` and `.`. Choose such a one.
    BadName,
    /// The snapshot does not fit. It is given up; remove others, or make a larger store.
    NoSpace {
        /// Bytes it has taken so far.
        taken_bytes: u64,
        /// Bytes of all its images, zeros included.
        images_bytes: u64,
        /// Bytes of the store that no finished snapshot has.
        room_bytes: u64,
        /// Bytes of the store.
        size_bytes: u64,
    },
    /// The directory has no room for one more. Remove a snapshot.
    DirectoryFull,
    /// There is no such image, or the range is not one of its pages. Correct the program.
    OutOfRange,
    /// What is there is not what was put there. The rest can be read; remove the snapshot.
    Damaged {
        /// The image.
        image: String,
        /// Where in it, in bytes.
        offset: u64,
    },
    /// The service has no such disk. Correct its `disks`.
    NoDisk {
        /// Which.
        disk: String,
    },
    /// The disk has another size than when the snapshot was taken. Make it as it was.
    OtherSize {
        /// Which.
        disk: String,
        /// Bytes it has.
        found: u64,
        /// Bytes it had.
        had: u64,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { size_bytes, least_bytes } => {
                write!(out, "{size_bytes} bytes are too few: {least_bytes} is the least")
            }
            Self::Damaged => out.write_str("the directory of snapshots is damaged"),
            Self::OtherVersion { found, known } => {
                write!(out, "the snapshots have format version {found}, this program knows {known}")
            }
            Self::Failed(error) => write!(out, "reading the blocks failed: {error}"),
        }
    }
}

impl fmt::Display for RespondError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => out.write_str("the bytes are no request"),
            Self::Failed(error) => write!(out, "store or disk failed: {error}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSnapshot => out.write_str("there is no such snapshot"),
            Self::NoDraft => out.write_str("no snapshot of this number is being made"),
            Self::NameTaken => out.write_str("a snapshot of this name is there already"),
            Self::BadName => {
                out.write_str("a name has 1 to 64 letters, digits, \"-\", \"_\" and \".\"")
            }
            Self::NoSpace { taken_bytes, images_bytes, room_bytes, size_bytes } => write!(
                out,
                "it does not fit: it has taken {taken_bytes} bytes so far and may have \
                 {images_bytes}, and {room_bytes} of {size_bytes} bytes are no other snapshot's"
            ),
            Self::DirectoryFull => out.write_str("the directory has no room for one more"),
            Self::OutOfRange => out.write_str("there is no such image, or no such page of it"),
            Self::Damaged { image, offset } => {
                write!(out, "the image of {image} is damaged at byte {offset}")
            }
            Self::NoDisk { disk } => write!(out, "the service has no disk {disk}"),
            Self::OtherSize { disk, found, had } => {
                write!(out, "disk {disk} has {found} bytes, and had {had} in the snapshot")
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }
}

impl std::error::Error for RespondError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Malformed => None,
        }
    }
}

impl std::error::Error for Refusal {}
