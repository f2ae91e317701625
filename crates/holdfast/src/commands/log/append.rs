//! `holdfast log append`.
//!
//! Promise: every record that is reported is on the disk; a record that is refused ends it, and
//! those before it are appended.
//! Never: appends a record that its log's own reader could not decode, as far as its format tells.

use super::opened::{open, what, write_problem};
use super::records;
use crate::cli::log::Existing;
use crate::output::Output;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_wal::AppendError;
use std::io::{BufRead, stdin};

/// What it does, for messages.
const DOING: &str = "appending to";

/// Appends arguments, or lines.
pub(super) fn append(log: &Existing, texts: Vec<String>, output: Output) -> Outcome<()> {
    let (opened, directory) = (open(DOING, log)?, &*log.directory);
    let mut count = 0_u64;
    let mut append = |text: &str| -> Outcome<()> {
        let refused = |why: String| {
            let remedy = format!("the {count} before it are appended; correct it and go on there");
            Problem::new(Exit::Usage, what(DOING, directory), why, remedy)
        };
        let record = records::from_text(&opened.records, text).map_err(refused)?;
        match opened.log.append(&record) {
            Ok(_) => count += 1,
            Err(error @ AppendError::TooLarge { .. }) => return Err(refused(error.to_string())),
            Err(error) => return Err(write_problem(DOING, directory, &error)),
        }
        Ok(())
    };
    let appended = match texts.is_empty() {
        false => texts.iter().try_for_each(|text| append(text)),
        true => stdin().lock().lines().try_for_each(|line| {
            append(&line.map_err(|error| write_problem(DOING, directory, &error))?)
        }),
    };
    opened.log.close().map_err(|error| write_problem(DOING, directory, &error))?;
    appended?;
    let end = opened.log.stat().end.get();
    let value = serde_json::json!({ "appended": count, "end_lsn": end, "class": "disk" });
    output.result(&value, &format!("{count} records appended and on the disk, up to LSN {end}"));
    Ok(())
}
