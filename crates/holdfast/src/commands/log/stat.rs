//! `holdfast log stat`.
//!
//! Promise: of a log that nobody has open, everything that opening it tells; of an open one, what
//! its files say by themselves, and that it is open.
//! Never: shows a position of a log that is being written.

use super::{AnyLog, keys, open_problem};
use crate::cli::log::Existing;
use crate::output::Output;
use crate::problem::Outcome;
use crate::sizes::rounded;
use holdfast_wal::{OpenError, Options, RecordType, Recovery};
use std::path::Path;

/// What it does, for messages.
const DOING: &str = "looking at";

/// The log's files.
#[derive(Default)]
struct Files {
    segments: u64,
    bytes: u64,
}

/// Shows what a log is.
pub(super) fn stat(log: &Existing, output: Output) -> Outcome<()> {
    let directory = &*log.directory;
    let options = keys::with(Options::new(), log.key_file.as_deref())?;
    let problem = |error: &OpenError| open_problem(DOING, directory, error);
    let records = RecordType::of(directory).map_err(|error| problem(&error))?;
    let found = match AnyLog::open_any(directory, &options) {
        Ok((_log, found, _)) => Some(found),
        Err(OpenError::InUse) => None,
        Err(error) => return Err(problem(&error)),
    };
    let files = files(directory).map_err(|error| problem(&OpenError::Io(error)))?;
    output.result(&json(&records, found.as_ref(), &files), &text(&records, found.as_ref(), &files));
    Ok(())
}

fn files(directory: &Path) -> std::io::Result<Files> {
    let mut files = Files::default();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        files.segments += u64::from(entry.file_name().as_encoded_bytes().starts_with(b"segment-"));
        files.bytes += entry.metadata()?.len();
    }
    Ok(files)
}

fn text(records: &RecordType, found: Option<&Recovery>, files: &Files) -> String {
    let RecordType { record, version, format } = records;
    let state = match found {
        None => "open in another program; its positions are that program's".to_owned(),
        Some(found) => {
            let (first, end) = (found.checkpoint.get(), found.end.get());
            let torn = match found.torn {
                Some(at) => format!("; the remains of an unfinished write at {at} were cut off"),
                None => String::new(),
            };
            format!("from LSN {first} to {end}, {} needed{torn}", rounded(end - first))
        }
    };
    let (segments, bytes) = (files.segments, rounded(files.bytes));
    format!(
        "records   `{record}`, version {version}, format {format}\nlog       {state}\nfiles     \
         {segments} segments, {bytes}"
    )
}

fn json(records: &RecordType, found: Option<&Recovery>, files: &Files) -> serde_json::Value {
    serde_json::json!({
        "record": records.record,
        "version": records.version,
        "format": records.format,
        "open_elsewhere": found.is_none(),
        "first_lsn": found.map(|found| found.checkpoint.get()),
        "end_lsn": found.map(|found| found.end.get()),
        "torn_at_lsn": found.and_then(|found| found.torn).map(|at| at.get()),
        "bytes_scanned": found.map(|found| found.bytes_scanned),
        "segments": files.segments,
        "file_bytes": files.bytes,
    })
}
