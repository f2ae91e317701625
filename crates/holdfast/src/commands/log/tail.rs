//! `holdfast log tail`.
//!
//! Promise: the last records of the log, in order.
//! Never: keeps more records in memory than it prints.

use super::{open, records, replay_problem};
use crate::output::Output;
use crate::problem::Outcome;
use std::collections::VecDeque;
use std::path::Path;

/// Prints the last records.
pub(super) fn tail(directory: &Path, count: usize, output: Output) -> Outcome<()> {
    let opened = open("printing", directory)?;
    let mut last = VecDeque::new();
    for entry in opened.log.iter() {
        let entry = entry.map_err(|error| replay_problem("printing", directory, &error))?;
        last.push_back(records::line(&opened.records, &entry, output.json));
        if last.len() > count {
            last.pop_front();
        }
    }
    output.lines(last);
    Ok(())
}
