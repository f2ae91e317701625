//! `holdfast log repair`.
//!
//! Promise: a new log with everything that can be read, at its old positions; every stretch that is
//! lost or was given back by parity is named, and that an end may be missing of which nothing is
//! known; the old log stays as it is.
//! Never: writes anything if it is only asked what it would do.

use super::opened::{open_problem, stretch, what};
use crate::output::{Output, Progress};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_wal::{BrokenSet, FileFault, LsnRange, OpenError, RepairError, Repaired};
use serde_json::{Value, json};
use std::path::Path;

/// What it does, for messages.
const DOING: &str = "repairing";

/// What has to be known of a log whose files were not all there, or not of one moment.
const REBUILT: &str = "its files were missing, short or of different moments: where it began and \
                       ended was found out from its segments, and nothing is known of what may \
                       have been behind";

/// Saves what is left.
pub(super) fn repair(from: &Path, to: Option<&Path>, output: Output) -> Outcome<()> {
    let mut progress = Progress::of_bytes("saving");
    let done = holdfast_wal::repair(from, to, &mut |walked| {
        progress.done(walked.done_bytes, walked.all_bytes);
    });
    drop(progress);
    let done = done.map_err(|error| match error {
        RepairError::Source(error) => source_problem(from, &error),
        error => {
            let remedy = "the old log is as it was; name a new or an empty directory with room";
            Problem::new(Exit::Failed, what(DOING, from), error, remedy)
        }
    })?;
    output.result(&json(&done, to.is_none()), &text(&done, to));
    Ok(())
}

/// Why nothing can be saved. What a repair is refused for, another one is refused for, too.
fn source_problem(from: &Path, error: &OpenError) -> Problem {
    match error {
        OpenError::File { fault: FileFault::NotAFile, .. } => open_problem(DOING, from, error),
        OpenError::File { .. } | OpenError::MissingSegment { .. } => {
            let remedy = "nothing was written: without it there is nothing to save; restore it \
                          from a copy";
            Problem::new(Exit::Damaged, what(DOING, from), error, remedy)
        }
        _ => open_problem(DOING, from, error),
    }
}

fn text(done: &Repaired, to: Option<&Path>) -> String {
    let mut text = match to {
        Some(to) => format!("{} frames are in the new log, {}\n", done.frames, to.display()),
        None => format!("{} frames can be saved; nothing was written\n", done.frames),
    };
    let mut tell = |what: &str, stretches: &[LsnRange]| {
        for stretch in stretches {
            text += &format!("{what}: LSN {} to {}\n", stretch.from.get(), stretch.to.get());
        }
    };
    tell("given back by parity", &done.mended);
    tell("lost", &done.lost);
    if done.rebuilt {
        text += &format!("{REBUILT} LSN {}\n", done.end.get());
    }
    for broken in &done.broken {
        let BrokenSet { lsn, records, readable, .. } = broken;
        let (lsn, whole) = (lsn.get(), readable.len());
        text += &format!("the lost set at LSN {lsn}: {whole} of {records} records are whole\n");
    }
    text
}

fn json(done: &Repaired, is_dry: bool) -> Value {
    let stretches = |stretches: &[LsnRange]| stretches.iter().map(stretch).collect::<Vec<_>>();
    let broken = |set: &BrokenSet| {
        let BrokenSet { lsn, records, readable, .. } = set;
        json!({ "lsn": lsn.get(), "records": records, "readable": readable })
    };
    json!({
        "dry_run": is_dry,
        "frames": done.frames,
        "first_lsn": done.first.get(),
        "end_lsn": done.end.get(),
        "mended": stretches(&done.mended),
        "lost": stretches(&done.lost),
        "rebuilt": done.rebuilt,
        "broken": done.broken.iter().map(broken).collect::<Vec<_>>(),
    })
}
