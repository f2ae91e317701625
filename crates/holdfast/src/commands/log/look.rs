//! A log of which records are read, and nothing else is wanted.
//!
//! Promise: every sound log is read that one of our programs made, whoever uses it and whatever its
//! disk lets be written; one that is opened is opened as its own program would.
//! Never: changes a log that it cannot open, or that says nothing of its records: that is somebody
//! else's to open, with its memory.

use super::opened::{AnyLog, open_problem, open_with};
use crate::cli::log::Existing;
use crate::commands::log::keys;
use holdfast_config::problem::Outcome;
use holdfast_wal::format::Raw;
use holdfast_wal::{LabelFault, Lsn, OpenError, Options, RecordType, Replay, ReplayBack, Watch};
use std::io::ErrorKind;

/// A log of any type that is read as it lies there.
pub(super) type AnyWatch = Watch<Vec<u8>, Raw>;

/// A log to be read, and what it says of its records.
pub(super) struct Looked {
    by: By,
    pub(super) records: Option<RecordType>,
}

enum By {
    Opened(AnyLog, Lsn),
    Watched(Box<AnyWatch>),
}

impl Looked {
    /// The records from this position on, or from the last checkpoint.
    pub(super) fn iter(&self, from: Option<Lsn>) -> Replay<Vec<u8>, Raw> {
        match &self.by {
            By::Opened(log, checkpoint) => log.iter_from(from.unwrap_or(*checkpoint)),
            By::Watched(watch) => from.map_or_else(|| watch.iter(), |from| watch.iter_from(from)),
        }
    }

    /// The records from the set on that ends at this position, or from the last one, back.
    pub(super) fn iter_back(&self, from: Option<Lsn>) -> ReplayBack<Vec<u8>, Raw> {
        match &self.by {
            By::Opened(log, _) => {
                from.map_or_else(|| log.iter_back(), |from| log.iter_back_from(from))
            }
            By::Watched(watch) => {
                from.map_or_else(|| watch.iter_back(), |from| watch.iter_back_from(from))
            }
        }
    }
}

/// Makes a log ready to be read.
pub(super) fn look(doing: &str, log: &Existing) -> Outcome<Looked> {
    let options = keys::with(Options::new(), log.key_file.as_deref())?;
    let looked = match open_with(log, &options) {
        Ok(opened) => {
            let by = By::Opened(opened.log, opened.recovery.checkpoint);
            Ok(Looked { by, records: Some(opened.records) })
        }
        Err(error) if is_left_as_it_is(&error) => {
            let watched = AnyWatch::open_at_rest(&log.directory, &options);
            watched.map(|(watch, records)| Looked { by: By::Watched(Box::new(watch)), records })
        }
        Err(error) => Err(error),
    };
    looked.map_err(|error| open_problem(doing, &log.directory, &error))
}

/// Whether a log cannot be opened, for a reason that keeps nobody from reading it.
pub(super) fn is_left_as_it_is(error: &OpenError) -> bool {
    match error {
        OpenError::Label(LabelFault::Missing) => true,
        OpenError::Io(error) => error.kind() == ErrorKind::ReadOnlyFilesystem,
        _ => false,
    }
}
