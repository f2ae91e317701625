//! What came back from a log.
//!
//! Promise: a record that is missing, doubled, out of its writer's order or, if asked, changed in
//! any byte is an error that names it.
//! Never: trusts a log's own count.

use std::hint::black_box;

use crate::Failure;
use crate::record::{Format, Record, SAMPLES, origin};

/// Counts records and checks their order; and their content if it has something to compare with.
#[derive(Debug)]
pub(crate) struct Tally {
    format: Format,
    /// Next number of each writer.
    next: Vec<u32>,
    /// Every sample, or nothing.
    samples: Vec<Record>,
}

impl Tally {
    /// Looks at the order alone, which costs about nothing: for what is timed.
    pub(crate) fn of_order(format: Format) -> Tally {
        Tally { format, next: Vec::new(), samples: Vec::new() }
    }

    /// Looks at everything.
    pub(crate) fn of_content(format: Format) -> Tally {
        Tally { samples: Record::samples(), ..Tally::of_order(format) }
    }

    /// How the records are written.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Takes the next record, encoded.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let record = self.format.decode(bytes)?;
        self.record(black_box(&record))
    }

    /// Takes the next record, from a log that decodes by itself.
    pub(crate) fn record(&mut self, record: &Record) -> Result<(), Failure> {
        let number = self.id(record.id)?;
        self.compare(record, number as usize)
    }

    /// Takes the id of the next record, which is all that is looked at of it. Returns its number.
    pub(crate) fn id(&mut self, id: u32) -> Result<u32, Failure> {
        let (writer, number) = origin(id).ok_or("an id that nobody gave")?;
        let writer = writer as usize;
        if self.next.len() <= writer {
            self.next.resize(writer + 1, 0);
        }
        if self.next[writer] != number {
            let wanted = self.next[writer];
            return Err(format!("writer {writer}: record {number} instead of {wanted}").into());
        }
        self.next[writer] = number + 1;
        Ok(number)
    }

    /// Refuses other counts than these, a count a writer.
    pub(crate) fn expect(&self, counts: &[u32]) -> Result<(), Failure> {
        let came = |writer: usize| self.next.get(writer).copied().unwrap_or(0);
        for writer in 0..counts.len().max(self.next.len()) {
            let (came, wanted) = (came(writer), counts.get(writer).copied().unwrap_or(0));
            if came != wanted {
                let said = format!("writer {writer}: {came} records came back of {wanted}");
                return Err(said.into());
            }
        }
        Ok(())
    }

    fn compare(&self, record: &Record, number: usize) -> Result<(), Failure> {
        let Some(sample) = self.samples.get(number % SAMPLES) else { return Ok(()) };
        if !record.has_content_of(sample) {
            return Err(format!("record {number} came back changed: {record:?}").into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
