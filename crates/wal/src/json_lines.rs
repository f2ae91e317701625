//! The paper's plain JSON log: one object a line, without checks.
//!
//! It is here to read the logs of programs that had nothing better, and to show what unchecked text
//! cannot notice (section V-A of the paper): a value that turned into another of its type is read
//! as if it had been written, and so is a record that is missing.
//!
//! Promise: reads what the paper's `JSONLogger` wrote, record by record; white space between and
//! in records means nothing; text that is no record is reported with its place.
//! Never: notices that a digit has changed. Use [`crate::format::Json`] for that.

use std::io::{self, BufRead, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why the lines cannot be read on. There are no more after it.
#[derive(Debug, thiserror::Error)]
#[error("no record behind byte {offset}: {reason}")]
pub struct LineError {
    /// Bytes of text before the record that cannot be read.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: serde_json::Error,
}

/// Writes one record as a line. It is as durable as the caller makes `out`.
///
/// # Errors
/// The record has no JSON, or `out` cannot be written; then part of the line may be.
pub fn write<R: Serialize>(out: &mut impl Write, record: &R) -> io::Result<()> {
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}

/// The records in `text`, in order, up to the first that cannot be read.
pub fn read<R: DeserializeOwned>(text: impl BufRead) -> impl Iterator<Item = Result<R, LineError>> {
    let mut records = serde_json::Deserializer::from_reader(text).into_iter();
    std::iter::from_fn(move || {
        let offset = records.byte_offset() as u64;
        Some(records.next()?.map_err(|reason| LineError { offset, reason }))
    })
}
