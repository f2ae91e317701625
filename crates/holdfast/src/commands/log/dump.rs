//! `holdfast log dump`.
//!
//! Promise: every record from where it begins, in order, up to the end or the first damage, which
//! is then named.
//! Never: keeps more than one set in memory.

use super::{open, records, replay_problem, write_problem};
use crate::output::Output;
use crate::problem::Outcome;
use holdfast_wal::Lsn;
use std::io::{BufWriter, ErrorKind, Write, stdout};
use std::path::Path;

/// What it does, for messages.
const DOING: &str = "printing";

/// Prints records.
pub(super) fn dump(
    directory: &Path,
    from: Option<u64>,
    limit: Option<u64>,
    output: Output,
) -> Outcome<()> {
    let opened = open(DOING, directory)?;
    let from = from.map_or(opened.recovery.checkpoint, Lsn);
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut out = BufWriter::new(stdout().lock());
    for entry in opened.log.iter_from(from).take(limit) {
        let line = entry.map(|entry| records::line(&opened.records, &entry, output.json));
        let written = match line {
            Ok(line) => writeln!(out, "{line}"),
            // What came before is printed when the buffer is dropped.
            Err(error) => return Err(replay_problem(DOING, directory, &error)),
        };
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(|error| write_problem(DOING, directory, &error))?,
        }
    }
    out.flush().map_err(|error| write_problem(DOING, directory, &error))
}
