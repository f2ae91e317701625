//! Records of one page, gathered from wherever they are.
//!
//! Promise: comes in the order of the stream, and begins with the newest image among them, if there
//! is one; its memory is used again for the next page.
//! Never: reads anything.

use std::ops::Range;

use crate::stream::record::{Record, parse};
use crate::stream::rsn::Rsn;

/// Records of one page.
#[derive(Clone, Debug, Default)]
pub struct PageRecords {
    bytes: Vec<u8>,
    records: Vec<(Rsn, Range<usize>)>,
    /// Where the newest image or copy stands.
    image: Rsn,
}

impl PageRecords {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.image = Rsn::NONE;
    }

    /// Adds a record, unless there is an image behind it.
    pub fn push(&mut self, record: &Record<'_>) {
        if record.rsn < self.image {
            return;
        }
        if record.what.is_whole() {
            self.image = record.rsn;
        }
        let from = self.bytes.len();
        record.what.put(record.rsn, &mut self.bytes);
        self.records.push((record.rsn, from..self.bytes.len()));
    }

    /// Whether there is an image, so that nothing before it is of use.
    #[must_use]
    pub fn has_image(&self) -> bool {
        self.image != Rsn::NONE
    }

    /// The records in the order of the stream, from the newest image on.
    pub fn in_order(&mut self) -> impl Iterator<Item = Record<'_>> {
        self.records.sort_unstable_by_key(|(rsn, _)| *rsn);
        let from = self.records.partition_point(|(rsn, _)| *rsn < self.image);
        let bytes = &self.bytes;
        self.records[from..].iter().map(|(rsn, range)| {
            parse(*rsn, &bytes[range.clone()]).expect("what is pushed was parsed before")
        })
    }
}
