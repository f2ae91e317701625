//! `holdfast log tail`.
//!
//! Promise: the last records of the log, in order; followed, also those that become durable later,
//! each once, whoever has the log open.
//! Never: reads what lies before them; changes a log that it follows.

use super::look::{AnyWatch, look};
use super::opened::{open_problem, replay_problem, write_problem};
use super::{keys, records};
use crate::cli::log::Existing;
use crate::output::{Output, write_line};
use holdfast_config::problem::Outcome;
use holdfast_wal::{Entry, Options, RecordType, ReplayError};
use std::io::stdout;
use std::time::Duration;

/// What it does, for messages.
const DOING: &str = "printing";

/// How long is waited for a record before it is waited for again.
const WAIT: Duration = Duration::from_secs(3600);

/// Prints the last records.
pub(super) fn tail(log: &Existing, count: usize, output: Output) -> Outcome<()> {
    let looked = look(DOING, log)?;
    let back = looked.iter_back(None);
    let printer = Printer { log, records: looked.records, output };
    output.lines(printer.last(back, count)?);
    Ok(())
}

/// Prints the last records, and whatever follows.
pub(super) fn follow(log: &Existing, count: usize, output: Output) -> Outcome<()> {
    let options = keys::with(Options::new(), log.key_file.as_deref())?;
    let watched = AnyWatch::open_any(&log.directory, &options);
    let (mut watch, records) =
        watched.map_err(|error| open_problem(DOING, &log.directory, &error))?;
    let printer = Printer { log, records, output };
    output.lines(printer.last(watch.iter_back(), count)?);
    loop {
        if let Some(entry) = watch.next(WAIT).transpose() {
            let line = printer.line(entry)?;
            let printed = write_line(&mut stdout().lock(), &line);
            if !printed.map_err(|error| write_problem(DOING, &log.directory, &error))? {
                return Ok(());
            }
        }
    }
}

/// Makes lines of records.
struct Printer<'a> {
    log: &'a Existing,
    records: Option<RecordType>,
    output: Output,
}

impl Printer<'_> {
    fn line(&self, entry: Result<Entry<Vec<u8>>, ReplayError>) -> Outcome<String> {
        let entry = entry.map_err(|error| replay_problem(DOING, &self.log.directory, &error))?;
        Ok(records::line(self.records.as_ref(), &entry, self.output.json))
    }

    /// The lines of the first so many of these, in the opposite order.
    fn last(
        &self,
        back: impl Iterator<Item = Result<Entry<Vec<u8>>, ReplayError>>,
        count: usize,
    ) -> Outcome<Vec<String>> {
        let lines = back.take(count).map(|entry| self.line(entry));
        let mut lines = lines.collect::<Outcome<Vec<_>>>()?;
        lines.reverse();
        Ok(lines)
    }
}
