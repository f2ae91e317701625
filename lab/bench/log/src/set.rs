//! Sets of records on their way into a log.
//!
//! Promise: a writer's records come in the order of their numbers; encoding happens where a log
//! asks for it, so that it is inside every clock.
//! Never: allocates once the first sets have gone through.

use crate::Failure;
use crate::record::{Format, Record, SAMPLES, id};

/// Where one writer's records come from.
pub(crate) struct Source {
    writer: u32,
    number: u32,
    format: Format,
    samples: Vec<Record>,
    encoded: Encoded,
}

/// Records as bytes, one after the other.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Records that are appended together or not at all.
pub(crate) struct Set<'a> {
    writer: u32,
    format: Format,
    records: &'a [Record],
    encoded: &'a mut Encoded,
}

impl Source {
    pub(crate) fn new(writer: u32, format: Format) -> Source {
        let (samples, encoded) = (Record::samples(), Encoded::default());
        Source { writer, number: 0, format, samples, encoded }
    }

    /// Records that were given away.
    pub(crate) fn given(&self) -> u32 {
        self.number
    }

    /// The next set of so many records, which must divide [`SAMPLES`].
    pub(crate) fn next_set(&mut self, records: usize) -> Set<'_> {
        let first = self.number as usize % SAMPLES;
        let records = &mut self.samples[first..first + records];
        for record in records.iter_mut() {
            record.id = id(self.writer, self.number);
            self.number += 1;
        }
        Set { writer: self.writer, format: self.format, records, encoded: &mut self.encoded }
    }
}

impl Set<'_> {
    /// Who writes it: from 0.
    pub(crate) fn writer(&self) -> u32 {
        self.writer
    }

    /// How its records are written.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// The records, for a log that encodes by itself.
    pub(crate) fn records(&self) -> &[Record] {
        self.records
    }

    /// Encodes each record, for a log that takes bytes: the record's id and its bytes.
    pub(crate) fn encode(&mut self) -> Result<impl Iterator<Item = (u32, &[u8])>, Failure> {
        let Encoded { bytes, ends } = &mut *self.encoded;
        bytes.clear();
        ends.clear();
        for record in self.records {
            self.format.encode(record, bytes)?;
            ends.push(bytes.len());
        }
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let parts = begins.zip(ends.iter()).map(|(begin, end)| &bytes[begin..*end]);
        Ok(self.records.iter().map(|record| record.id).zip(parts))
    }
}

#[cfg(test)]
mod tests;
