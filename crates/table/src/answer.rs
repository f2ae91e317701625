//! What a client is told: what each operation came to, or why nothing was done.
//!
//! Promise: what was encoded is what is decoded; any other bytes are [`Malformed`].
//! Never: tells some outcomes of a request that was refused.

use std::fmt;

use crate::request::{put_schema, take_schema};
use crate::schema::Schema;
use crate::value::Row;
use crate::wire::{self, Malformed, Rest};

/// How answers are written.
const VERSION: u8 = 1;

/// The outcomes of all operations of a request, in their order, or why none of them was done.
pub type Answer = Result<Vec<Outcome>, Refusal>;

/// What one operation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// There is no such row.
    NoRow,
    /// There is this row.
    Row(Row),
    /// These rows, in the order asked for.
    Rows {
        /// They.
        rows: Vec<Row>,
        /// Whether the range has more behind them, because of the limit, or of
        /// [`SCAN_BYTES_MAX`](crate::SCAN_BYTES_MAX).
        has_more: bool,
    },
    /// These tables, in the order of their names.
    Tables {
        /// Their names, and what their rows are.
        tables: Vec<(String, Schema)>,
        /// Whether there are more behind them, because of
        /// [`SCAN_BYTES_MAX`](crate::SCAN_BYTES_MAX).
        has_more: bool,
    },
}

/// Why nothing of a request was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is in the way.
    pub status: Status,
    /// Which operation, counted from 0, was the first that could not be done.
    pub operation: u32,
}

/// What is in the way of an operation. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Status {
    /// The bytes are no request. Ask for something else.
    Malformed = 1,
    /// There is no table of this name. Make it.
    NoTable = 2,
    /// There is a table of this name.
    TableExists = 3,
    /// Values, fields or an index are not such as the table has. Ask for something else.
    Mismatch = 4,
    /// There is a row with this key.
    RowExists = 5,
    /// There is no row with this key.
    NoRow = 6,
    /// There is a row with these values, in a unique index.
    NotUnique = 7,
    /// The row is not as was expected. Read it again, and decide.
    NotAsExpected = 8,
    /// A sum is no value of its field.
    Overflow = 9,
    /// A key, a row, what the request touches ([`TOUCHED_BYTES_MAX`](crate::TOUCHED_BYTES_MAX)) or
    /// its answer are too large. Ask for less at once.
    TooLarge = 10,
}

impl Status {
    pub(crate) const ALL: [Status; 10] = [
        Status::Malformed,
        Status::NoTable,
        Status::TableExists,
        Status::Mismatch,
        Status::RowExists,
        Status::NoRow,
        Status::NotUnique,
        Status::NotAsExpected,
        Status::Overflow,
        Status::TooLarge,
    ];

    fn of_number(number: u8) -> Option<Status> {
        Status::ALL.into_iter().find(|status| *status as u8 == number)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Status::Malformed => "the bytes are no request",
            Status::NoTable => "there is no table of this name",
            Status::TableExists => "there is a table of this name",
            Status::Mismatch => "values, fields or an index are not such as the table has",
            Status::RowExists => "there is a row with this key",
            Status::NoRow => "there is no row with this key",
            Status::NotUnique => "a unique index has these values",
            Status::NotAsExpected => "the row is not as was expected",
            Status::Overflow => "a sum is no value of its field",
            Status::TooLarge => {
                "a key, a row, what is touched or the answer is too large; ask for less at once"
            }
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "operation {}: {}; nothing was done", self.operation, self.status)
    }
}

impl std::error::Error for Refusal {}

/// The answer that has these bytes.
///
/// # Errors
/// They are of none.
pub fn decode(mut bytes: &[u8]) -> Result<Answer, Malformed> {
    if wire::byte(&mut bytes)? != VERSION {
        return Err(Malformed("it is of another version"));
    }
    let status = wire::byte(&mut bytes)?;
    if status != 0 {
        let status = Status::of_number(status).ok_or(Malformed("there is no such status"))?;
        let operation = wire::u32(&mut bytes)?;
        wire::end(bytes)?;
        return Ok(Err(Refusal { status, operation }));
    }
    let mut outcomes = Vec::new();
    while !bytes.is_empty() {
        outcomes.push(take_outcome(&mut bytes)?);
    }
    Ok(Ok(outcomes))
}

/// Begins an answer that has outcomes.
pub(crate) fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[VERSION, 0]);
}

/// Makes it an answer that nothing was done.
pub(crate) fn refuse(refusal: Refusal, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[VERSION, refusal.status as u8]);
    out.extend_from_slice(&refusal.operation.to_le_bytes());
}

/// Appends what an operation came to.
pub(crate) fn put_outcome(outcome: &Outcome, out: &mut Vec<u8>) {
    match outcome {
        Outcome::Done => out.push(0),
        Outcome::NoRow => out.push(1),
        Outcome::Row(row) => {
            out.push(2);
            wire::put_row(row, out);
        }
        Outcome::Rows { rows, has_more } => {
            out.push(3);
            out.push(u8::from(*has_more));
            wire::put_count(rows.len(), out);
            rows.iter().for_each(|row| wire::put_row(row, out));
        }
        Outcome::Tables { tables, has_more } => {
            out.push(4);
            out.push(u8::from(*has_more));
            wire::put_count(tables.len(), out);
            for (name, schema) in tables {
                wire::put_bytes(name.as_bytes(), out);
                put_schema(schema, out);
            }
        }
    }
}

fn take_outcome(rest: Rest<'_, '_>) -> Result<Outcome, Malformed> {
    Ok(match wire::byte(rest)? {
        0 => Outcome::Done,
        1 => Outcome::NoRow,
        2 => Outcome::Row(wire::row(rest)?),
        3 => {
            let has_more = wire::flag(rest)?;
            Outcome::Rows { rows: wire::many(rest, wire::row)?, has_more }
        }
        4 => {
            let has_more = wire::flag(rest)?;
            let table = |rest: Rest<'_, '_>| Ok((wire::name(rest)?, take_schema(rest)?));
            Outcome::Tables { tables: wire::many(rest, table)?, has_more }
        }
        _ => return Err(Malformed("there is no such outcome")),
    })
}
