//! What is asked of snapshots, and what is answered.
//!
//! Promise: what was encoded is what is decoded; anything else is [`Malformed`]. Every request may
//! be repeated: done twice it leaves what it leaves when done once.
//! Never: copies a piece of an image more often than it is sent.
//!
//! A message is the length of its head, 4 bytes little endian, the head as MessagePack, and the
//! bytes of an image behind it, if it has any.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Refusal;

/// Most bytes of an image in one message.
pub const PIECE_BYTES_MAX: usize = 1 << 20;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Begin a snapshot; whatever this client was making before is given up.
    Begin {
        /// A number that no other snapshot has, drawn by the client; not 0.
        id: u64,
        /// Its name.
        name: String,
        /// When, in milliseconds since 1970.
        taken_ms: u64,
        /// Whatever the client wants to know of it later.
        note: String,
        /// The images that the client puts; those of the disks are the service's matter.
        images: Vec<NewImage>,
    },
    /// Put the bytes behind the head into an image, from `offset` on: whole pages of 4096 bytes.
    /// The last page of an image is filled up with zeros.
    Put {
        /// The snapshot that is being made.
        id: u64,
        /// The image, counted from 0.
        image: u32,
        /// Where, in bytes.
        offset: u64,
    },
    /// Copy all disks of the service at one instant. Changes of them wait meanwhile.
    TakeDisks {
        /// The snapshot that is being made.
        id: u64,
    },
    /// Make the snapshot one that is there.
    Commit {
        /// The snapshot that was being made.
        id: u64,
    },
    /// Tell of all snapshots.
    List,
    /// Read `bytes` bytes of an image, at most [`PIECE_BYTES_MAX`], from `offset` on: whole pages.
    Read {
        /// The snapshot.
        id: u64,
        /// The image, counted from 0.
        image: u32,
        /// Where, in bytes.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// Make the disks what they were. All of their images are checked before a disk is changed.
    RestoreDisks {
        /// The snapshot.
        id: u64,
    },
    /// Remove a snapshot and give its space back.
    Remove {
        /// The snapshot; one that is not there is removed already.
        id: u64,
    },
}

/// An image that a client is going to put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewImage {
    /// What it is called.
    pub name: String,
    /// Its bytes.
    pub size_bytes: u64,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// As asked.
    Done,
    /// All snapshots, the oldest first.
    Snapshots(Vec<Snapshot>),
    /// The bytes behind the head are what was read.
    Bytes,
    /// All that was read is zeros.
    Zeros,
    /// Nothing was done.
    Refused(Refusal),
}

/// A snapshot that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// When it was begun, in milliseconds since 1970.
    pub taken_ms: u64,
    /// What its client noted.
    pub note: String,
    /// What it consists of.
    pub images: Vec<Image>,
}

/// An image of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// What it is called.
    pub name: String,
    /// Who put it.
    pub kind: ImageKind,
    /// Its bytes.
    pub size_bytes: u64,
    /// Bytes of those pages that are not all zeros; missing if it cannot be read, because the index
    /// of its pages is damaged.
    pub held_bytes: Option<u64>,
}

/// Who puts an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    /// The client.
    Memory,
    /// The service, of the disk of this name.
    Disk,
}

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are no message of snapshots")]
pub struct Malformed;

impl Request {
    /// As it is sent, with a piece of an image or none.
    #[must_use]
    pub fn encode(&self, piece: &[u8]) -> Vec<u8> {
        message(self, piece)
    }

    /// What was sent, and the piece of an image behind it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no request.
    pub fn decode(bytes: &[u8]) -> Result<(Request, &[u8]), Malformed> {
        parted(bytes)
    }
}

impl Answer {
    /// As it is sent, with a piece of an image or none.
    #[must_use]
    pub fn encode(&self, piece: &[u8]) -> Vec<u8> {
        message(self, piece)
    }

    /// What was sent, and the piece of an image behind it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no answer.
    pub fn decode(bytes: &[u8]) -> Result<(Answer, &[u8]), Malformed> {
        parted(bytes)
    }
}

fn message(head: &impl Serialize, piece: &[u8]) -> Vec<u8> {
    let head = rmp_serde::to_vec_named(head).expect("plain data");
    let length = u32::try_from(head.len()).expect("a head has no image in it");
    [&length.to_le_bytes(), &head[..], piece].concat()
}

fn parted<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), Malformed> {
    let (length, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| Malformed)?;
    let (head, piece) = rest.split_at_checked(length).ok_or(Malformed)?;
    let mut head = rmp_serde::Deserializer::from_read_ref(head);
    let decoded = T::deserialize(&mut head).map_err(|_| Malformed)?;
    Ok((decoded, piece))
}
