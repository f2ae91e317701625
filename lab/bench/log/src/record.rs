//! The record that every log is given, the one that the paper on user-space logs measures with.
//!
//! Promise: 113 bytes as MessagePack, whatever its number; any record can be made again from its
//! writer and its number alone.
//! Never: knows a log.

use holdfast_bench_common::random::mixed;
use serde::{Deserialize, Serialize};

use crate::Failure;

/// Records of one writer that differ in more than their id. A power of two, so that no set of 1, 2
/// or 4 goes over the end.
pub(crate) const SAMPLES: usize = 1024;

/// Records that one writer can number.
pub(crate) const NUMBERS: u32 = 1 << 24;

/// Characters of a comment.
const COMMENT_CHARS: usize = 17;

/// Objects of a record.
const OBJECTS: u64 = 8;

/// A part of a record.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub(crate) struct Object {
    a: u32,
    b: u32,
}

/// The record.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub(crate) struct Record {
    pub(crate) id: u32,
    comment: String,
    objects: Vec<Object>,
}

impl holdfast_wal::Record for Record {
    const NAME: &'static str = "paper.record";
}

impl Record {
    /// The record of a place among the samples, with an id that is still to be set.
    pub(crate) fn sample(place: usize) -> Record {
        let mut words = (0..).map(|word| mixed((place as u64) << 8 | word));
        let comment = words.by_ref().take(COMMENT_CHARS).map(letter).collect();
        // Large, as MessagePack writes small numbers in fewer bytes.
        let mut large = || words.next().map_or(0, |word| word as u32) | 1 << 31;
        let objects = (0..OBJECTS).map(|_| Object { a: large(), b: large() }).collect();
        Record { id: 0, comment, objects }
    }

    /// True if the two differ in their ids at most.
    pub(crate) fn has_content_of(&self, other: &Record) -> bool {
        self.comment == other.comment && self.objects == other.objects
    }

    /// Every sample.
    pub(crate) fn samples() -> Vec<Record> {
        (0..SAMPLES).map(Record::sample).collect()
    }
}

/// The id of a writer's record: unique, growing with the number, and of one length in MessagePack.
pub(crate) fn id(writer: u32, number: u32) -> u32 {
    (writer + 1) * NUMBERS + number
}

/// The writer and the number in an id.
pub(crate) fn origin(id: u32) -> Option<(u32, u32)> {
    Some(((id / NUMBERS).checked_sub(1)?, id % NUMBERS))
}

/// How a record is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    MessagePack,
    Json,
}

impl Format {
    pub(crate) const ALL: [Format; 2] = [Format::MessagePack, Format::Json];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::MessagePack => "msgpack",
            Format::Json => "json",
        }
    }

    /// The one with this name.
    pub(crate) fn named(wanted: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == wanted)
    }

    /// What stands in an id of a figure, with a point after it; nothing for the usual one.
    pub(crate) fn part(self) -> &'static str {
        match self {
            Format::MessagePack => "",
            Format::Json => "json.",
        }
    }

    /// Adds a record to the bytes.
    pub(crate) fn encode(self, record: &Record, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        match self {
            Format::MessagePack => rmp_serde::encode::write(bytes, record)?,
            Format::Json => serde_json::to_writer(bytes, record)?,
        }
        Ok(())
    }

    /// The record in these bytes.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<Record, Failure> {
        Ok(match self {
            Format::MessagePack => rmp_serde::from_slice(bytes)?,
            Format::Json => serde_json::from_slice(bytes)?,
        })
    }
}

fn letter(word: u64) -> char {
    char::from(b'a' + (word % 26) as u8)
}

#[cfg(test)]
mod tests;
