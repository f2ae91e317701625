//! `holdfast log stat`.
//!
//! Promise: of a log that nobody has open, everything that opening it tells; of an open one, or of
//! a sealed one without its keys, what its files say by themselves, and why it is no more.
//! Never: shows the end of a log that it has not opened.

use super::keys;
use super::look::is_left_as_it_is;
use super::opened::{AnyLog, open_problem};
use crate::cli::log::Existing;
use crate::output::Output;
use holdfast_config::problem::Outcome;
use holdfast_config::sizes::rounded;
use holdfast_log::is_segment_name;
use holdfast_wal::{OpenError, Options, Outline, RecordType, Recovery};
use std::path::Path;

/// What it does, for messages.
const DOING: &str = "looking at";

/// The log's files.
#[derive(Default)]
struct Files {
    segments: u64,
    bytes: u64,
}

/// What opening the log told, or why it was not opened.
enum Found {
    Opened(Recovery),
    OpenElsewhere,
    Sealed,
    AsItIs,
}

/// Shows what a log is.
pub(super) fn stat(log: &Existing, output: Output) -> Outcome<()> {
    let directory = &*log.directory;
    let options = keys::with(Options::new(), log.key_file.as_deref())?;
    let problem = |error: &OpenError| open_problem(DOING, directory, error);
    let found = match AnyLog::open_any(directory, &options) {
        Ok((_log, found, _)) => Found::Opened(found),
        Err(OpenError::InUse) => Found::OpenElsewhere,
        Err(OpenError::Sealed) => Found::Sealed,
        Err(error) if is_left_as_it_is(&error) => Found::AsItIs,
        Err(error) => return Err(problem(&error)),
    };
    let outline = holdfast_wal::outline(directory).map_err(|error| problem(&error))?;
    let files = files(directory).map_err(|error| problem(&OpenError::Io(error)))?;
    output.result(&json(&outline, &found, &files), &text(&outline, &found, &files));
    Ok(())
}

fn files(directory: &Path) -> std::io::Result<Files> {
    let mut files = Files::default();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        files.segments += u64::from(entry.file_name().to_str().is_some_and(is_segment_name));
        files.bytes += entry.metadata()?.len();
    }
    Ok(files)
}

fn text(outline: &Outline, found: &Found, files: &Files) -> String {
    let (first, durable) = (outline.first.get(), outline.durable.get());
    let seen = format!("from LSN {first}, durable to {durable} or further");
    let state = match found {
        Found::OpenElsewhere => format!("{seen}; open in another program"),
        Found::AsItIs => seen,
        Found::Sealed => format!("{seen}; its end shows with the keys: --key-file FILE"),
        Found::Opened(found) => {
            let (first, end) = (found.checkpoint.get(), found.end.get());
            let torn = match found.torn {
                Some(at) => format!("; the remains of an unfinished write at {at} were cut off"),
                None => String::new(),
            };
            format!("from LSN {first} to {end}, {} needed{torn}", rounded(end - first))
        }
    };
    let (segments, bytes) = (files.segments, rounded(files.bytes));
    let records = records_text(outline);
    format!("records   {records}\nlog       {state}\nfiles     {segments} segments, {bytes}")
}

fn records_text(outline: &Outline) -> String {
    let sealed = if outline.sealed { ", sealed" } else { "" };
    match &outline.records {
        Some(RecordType { record, version, format }) => {
            format!("`{record}`, version {version}, format {format}{sealed}")
        }
        None => "known to the server, the volume or the store that uses the log".to_owned(),
    }
}

fn json(outline: &Outline, found: &Found, files: &Files) -> serde_json::Value {
    let Outline { records, sealed, first, durable, .. } = outline;
    let records = records.as_ref();
    let opened = match found {
        Found::Opened(found) => Some(found),
        Found::OpenElsewhere | Found::Sealed | Found::AsItIs => None,
    };
    serde_json::json!({
        "record": records.map(|it| &it.record),
        "version": records.map(|it| it.version),
        "format": records.map(|it| &it.format),
        "sealed": sealed,
        "open_elsewhere": matches!(found, Found::OpenElsewhere),
        "first_lsn": first.get(),
        "durable_lsn": durable.get(),
        "end_lsn": opened.map(|found| found.end.get()),
        "torn_at_lsn": opened.and_then(|found| found.torn).map(|at| at.get()),
        "bytes_scanned": opened.map(|found| found.bytes_scanned),
        "segments": files.segments,
        "file_bytes": files.bytes,
    })
}
