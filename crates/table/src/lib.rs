//! Ordered tables with several indexes, asked by requests of many operations.
//!
//! Promise: a request is one transaction, whole or not at all, and is done once however often it is
//! asked; a table and its indexes agree at every moment.
//! Never: keeps anything outside its store; panics at bytes, wherever they come from.
//!
//! Where to look: `value` is what a field has, `schema` what a table's rows are, `ordered` how
//! both become keys. `request` and `answer` are what is said, spelled by `wire`. `tables` does a
//! request: `catalogue` finds its tables, `rows` changes them and their indexes, `ranges` reads
//! them in order, `once` remembers what was answered, and `clients` for how long, until they have
//! `departed`. `check` compares tables with their indexes.

mod answer;
mod catalogue;
mod check;
mod clients;
mod departed;
mod error;
mod limits;
mod once;
mod ordered;
mod ranges;
mod request;
mod rows;
mod schema;
mod tables;
mod value;
mod wire;

pub use answer::{Answer, Outcome, Refusal, Status, decode as decode_answer};
pub use check::{Checked, Disagreement};
pub use clients::VANISHED_CLIENTS_MAX;
pub use error::{OpenError, RespondError};
pub use limits::{
    ANSWER_BYTES_MAX, ROW_BYTES_MAX, SCAN_BYTES_MAX, TOUCHED_BYTES_MAX, TOUCHED_PER_BYTE,
};
pub use once::NUMBERS_AHEAD_MAX;
pub use request::{Action, Change, Condition, Edge, Operation, Range, Request};
pub use schema::{FIELDS_MAX, INDEXES_MAX, Index, NAME_BYTES_MAX, Schema};
pub use tables::Tables;
pub use value::{Kind, Row, Value};
pub use wire::Malformed;

#[cfg(test)]
mod tests;
