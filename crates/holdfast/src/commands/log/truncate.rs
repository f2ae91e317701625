//! `holdfast log truncate`.
//!
//! Promise: when it ends the checkpoint is on the disk, or nothing has changed.
//! Never: takes away a record that lies at or behind the position.

use super::{open, what, write_problem};
use crate::exit::Exit;
use crate::output::Output;
use crate::problem::{Outcome, Problem};
use holdfast_wal::{CheckpointError, Lsn};
use std::path::Path;

/// What it does, for messages.
const DOING: &str = "truncating";

/// Makes a checkpoint.
pub(super) fn truncate(directory: &Path, before: u64, output: Output) -> Outcome<()> {
    let opened = open(DOING, directory)?;
    opened.log.checkpoint(Lsn(before)).map_err(|error| match error {
        CheckpointError::NoBoundary { .. } => {
            let remedy = "nothing was changed; use a position that `holdfast log dump` prints";
            Problem::new(Exit::Usage, what(DOING, directory), error, remedy)
        }
        error => write_problem(DOING, directory, &error),
    })?;
    opened.log.close().map_err(|error| write_problem(DOING, directory, &error))?;
    let first = opened.log.stat().checkpoint.get();
    let value = serde_json::json!({ "first_lsn": first });
    output.result(&value, &format!("the log begins at LSN {first} now"));
    Ok(())
}
