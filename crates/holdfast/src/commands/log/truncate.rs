//! `holdfast log truncate`.
//!
//! Promise: when it ends the checkpoint or the cut is on the disk, or nothing has changed.
//! Never: takes away a record on the other side of the position.

use super::opened::{Opened, open, what, write_problem};
use crate::cli::log::{Existing, TruncateArgs};
use crate::output::Output;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_wal::{CheckpointError, Lsn, TruncateError};
use std::fmt::Display;
use std::path::Path;

/// What it does, for messages.
const DOING: &str = "truncating";

/// Makes a checkpoint, or cuts off the end.
pub(super) fn truncate(log: &Existing, at: &TruncateArgs, output: Output) -> Outcome<()> {
    let (opened, directory) = (open(DOING, log)?, &*log.directory);
    if let Some(before) = at.before {
        truncate_before(&opened, directory, Lsn(before))?;
    }
    if let Some(after) = at.after {
        truncate_after(&opened, directory, Lsn(after))?;
    }
    opened.log.close().map_err(|error| write_problem(DOING, directory, &error))?;
    let stat = opened.log.stat();
    let (first, end) = (stat.checkpoint.get(), stat.end.get());
    let value = serde_json::json!({ "first_lsn": first, "end_lsn": end });
    let text = match at.after {
        None => format!("the log begins at LSN {first} now"),
        Some(after) => format!("what was behind LSN {after} is gone; the log goes on at {end}"),
    };
    output.result(&value, &text);
    Ok(())
}

fn truncate_before(opened: &Opened, directory: &Path, lsn: Lsn) -> Outcome<()> {
    opened.log.checkpoint(lsn).map_err(|error| match error {
        CheckpointError::NoBoundary { .. } => refused(directory, &error, ELSEWHERE),
        error => write_problem(DOING, directory, &error),
    })
}

fn truncate_after(opened: &Opened, directory: &Path, lsn: Lsn) -> Outcome<()> {
    opened.log.truncate_after(lsn).map_err(|error| match error {
        TruncateError::NoBoundary { .. } | TruncateError::Truncated { .. } => {
            refused(directory, &error, ELSEWHERE)
        }
        error => write_problem(DOING, directory, &error),
    })
}

const ELSEWHERE: &str = "nothing was changed; use a position that `holdfast log dump` prints";

fn refused(directory: &Path, why: &dyn Display, remedy: &str) -> Problem {
    Problem::new(Exit::Usage, what(DOING, directory), why, remedy)
}
