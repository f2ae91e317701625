//! `holdfast log dump`.
//!
//! Promise: every record from where it begins, in order, up to the end or the first damage, which
//! is then named; or in the opposite order, from the end.
//! Never: keeps more in memory than the log's reader does.

use super::look::{Looked, look};
use super::opened::{replay_problem, write_problem};
use super::records;
use crate::cli::log::Existing;
use crate::output::{Output, read_to_end, write_line};
use holdfast_config::problem::Outcome;
use holdfast_wal::{Entry, Lsn, ReplayError};
use std::io::{BufWriter, stdout};

/// What it does, for messages.
const DOING: &str = "printing";

/// What is to be printed.
pub(super) struct Part {
    pub(super) from: Option<u64>,
    pub(super) limit: Option<u64>,
    pub(super) reverse: bool,
}

/// Prints records.
pub(super) fn dump(log: &Existing, part: &Part, output: Output) -> Outcome<()> {
    let (looked, directory) = (look(DOING, log)?, &*log.directory);
    let limit = part.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut out = BufWriter::new(stdout().lock());
    for entry in entries(&looked, part).take(limit) {
        let line = entry.map(|entry| records::line(looked.records.as_ref(), &entry, output.json));
        // What came before a problem is printed when the buffer is dropped.
        let line = line.map_err(|error| replay_problem(DOING, directory, &error))?;
        if !write_line(&mut out, &line).map_err(|e| write_problem(DOING, directory, &e))? {
            return Ok(());
        }
    }
    let read = read_to_end(&mut out);
    read.map(drop).map_err(|error| write_problem(DOING, directory, &error))
}

fn entries(
    looked: &Looked,
    part: &Part,
) -> Box<dyn Iterator<Item = Result<Entry<Vec<u8>>, ReplayError>>> {
    let from = part.from.map(Lsn);
    match part.reverse {
        false => Box::new(looked.iter(from)),
        true => Box::new(looked.iter_back(from)),
    }
}
