//! Why something was not done, and what to do about it.
//!
//! Promise: what the caller asked wrongly, what there is no room for, and damage are told apart.
//! Never: says less than the numbers.

use std::io;

use serde::{Deserialize, Serialize};

/// Why there are no snapshots to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The store is smaller than its directory. Make a larger one.
    #[error("{size_bytes} bytes are too few: {least_bytes} is the least")]
    TooSmall {
        /// Bytes it has.
        size_bytes: u64,
        /// The least.
        least_bytes: u64,
    },
    /// It has something else than snapshots, or its directory is damaged. Nothing was changed; make
    /// a new one.
    #[error("the directory of snapshots is damaged")]
    Damaged,
    /// It was written in a version that this program does not know. Use the program that made it.
    #[error("the snapshots have format version {found}, this program knows {known}")]
    OtherVersion {
        /// The version found.
        found: u32,
        /// The version this program knows.
        known: u32,
    },
    /// The blocks cannot be read.
    #[error("reading the blocks failed: {0}")]
    Failed(#[source] io::Error),
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RespondError {
    /// The bytes are no request. Nothing was done; correct the program.
    #[error("the bytes are no request")]
    Malformed,
    /// The store or a disk failed. Whether the request was done is not known.
    #[error("store or disk failed: {0}")]
    Failed(#[source] io::Error),
}

/// Why a request was refused. Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No snapshot has this number. See the list.
    #[error("there is no such snapshot")]
    NoSnapshot,
    /// This client makes no snapshot of this number; the server was perhaps replaced meanwhile.
    /// Begin it again.
    #[error("no snapshot of this number is being made")]
    NoDraft,
    /// A snapshot of this name is there. Remove it, or choose another name.
    #[error("a snapshot of this name is there already")]
    NameTaken,
    /// A name has 1 to 64 letters, digits, `-`, `_` and `.`. Choose such a one.
    #[error("a name has 1 to 64 letters, digits, \"-\", \"_\" and \".\"")]
    BadName,
    /// The snapshot does not fit. It is given up; remove others, or make a larger store.
    #[error(
        "it does not fit: it has taken {taken_bytes} bytes so far and may have {images_bytes}, and \
         {room_bytes} of {size_bytes} bytes are no other snapshot's"
    )]
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
    #[error("the directory has no room for one more")]
    DirectoryFull,
    /// There is no such image, or the range is not one of its pages. Correct the program.
    #[error("there is no such image, or no such page of it")]
    OutOfRange,
    /// What is there is not what was put there. The rest can be read; remove the snapshot.
    #[error("the image of {image} is damaged at byte {offset}")]
    Damaged {
        /// The image.
        image: String,
        /// Where in it, in bytes.
        offset: u64,
    },
    /// The service has no such disk. Correct its `disks`.
    #[error("the service has no disk {disk}")]
    NoDisk {
        /// Which.
        disk: String,
    },
    /// The disk has another size than when the snapshot was taken. Make it as it was.
    #[error("disk {disk} has {found} bytes, and had {had} in the snapshot")]
    OtherSize {
        /// Which.
        disk: String,
        /// Bytes it has.
        found: u64,
        /// Bytes it had.
        had: u64,
    },
}
