//! `holdfast log tail`.
//!
//! Promise: the last records of the log, in order.
//! Never: reads what lies before them.

use super::{open, records, replay_problem};
use crate::cli::log::Existing;
use crate::output::Output;
use crate::problem::Outcome;

/// Prints the last records.
pub(super) fn tail(log: &Existing, count: usize, output: Output) -> Outcome<()> {
    let opened = open("printing", log)?;
    let line = |entry: Result<_, _>| {
        let entry = entry.map_err(|error| replay_problem("printing", &log.directory, &error))?;
        Ok(records::line(&opened.records, &entry, output.json))
    };
    let mut last = opened.log.iter_back().take(count).map(line).collect::<Outcome<Vec<_>>>()?;
    last.reverse();
    output.lines(last);
    Ok(())
}
