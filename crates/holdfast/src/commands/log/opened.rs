//! A log that a command has opened, and what is said where something of it fails.
//!
//! Promise: opening that takes long is said; every problem names the log and what to do next.
//! Never: changes a log.

use super::keys;
use crate::cli::log::Existing;
use crate::commands::making::aloud;
use crate::output::Progress;
use holdfast_attach::logs::{THE_DISK, in_the_way, remade};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::advice::cure;
use holdfast_process::link;
use holdfast_wal::format::Raw;
use holdfast_wal::{
    FileFault, LabelFault, Log, LsnRange, OpenError, Options, RecordType, Recovery, ReplayError,
};
use std::fmt::Display;
use std::path::Path;

/// A log of any type.
pub(super) type AnyLog = Log<Vec<u8>, Raw>;

/// A log that this process has opened, and what it found.
pub(super) struct Opened {
    pub(super) log: AnyLog,
    pub(super) recovery: Recovery,
    pub(super) records: RecordType,
}

/// Opens the log in a directory, aloud if it takes long.
pub(super) fn open(doing: &str, log: &Existing) -> Outcome<Opened> {
    let options = keys::with(Options::new(), log.key_file.as_deref())?;
    open_with(log, &options).map_err(|error| open_problem(doing, &log.directory, &error))
}

pub(super) fn open_with(log: &Existing, options: &Options) -> Result<Opened, OpenError> {
    let directory = &log.directory;
    let mut progress = Progress::new();
    let say = || progress.say(&format!("reading the log in {}", directory.display()));
    let opened = aloud(say, || AnyLog::open_any(directory, options));
    let (log, recovery, records) = opened?;
    recovery.remade.iter().for_each(|spoilt| tracing::warn!("{}", remade(spoilt)));
    Ok(Opened { log, recovery, records })
}

pub(super) fn what(doing: &str, directory: &Path) -> String {
    format!("{doing} the log in {}", directory.display())
}

/// Why a log cannot be opened, and what to do.
pub(super) fn open_problem(doing: &str, directory: &Path, error: &OpenError) -> Problem {
    let (what, shown) = (what(doing, directory), directory.display());
    if let OpenError::Io(error) = error
        && let Some(problem) = link::problem(&what, directory, error)
    {
        return problem;
    }
    let (exit, remedy) = match error {
        OpenError::NoLog => (
            Exit::Usage,
            format!("name a log's directory, or make it: holdfast log create {shown}"),
        ),
        OpenError::InUse => (Exit::InUse, "end the program that has it open first".to_owned()),
        OpenError::Io(error) => {
            (Exit::Failed, format!("nothing is lost; {}, then do it again", cure(error, THE_DISK)))
        }
        OpenError::Memory { .. } => {
            (Exit::Failed, "nothing is lost; see what takes the machine's memory".to_owned())
        }
        OpenError::Sealed => (Exit::Usage, "name the file with them: --key-file FILE".to_owned()),
        OpenError::NotSealed => (Exit::Usage, "leave out --key-file".to_owned()),
        OpenError::WrongKey { .. } => {
            (Exit::Usage, "nothing was changed; name the file with this log's keys".to_owned())
        }
        // No damage, as far as can be told: nobody but its owner changes it, that is all.
        OpenError::Label(LabelFault::Missing) => {
            (Exit::Usage, format!("nothing was changed; `holdfast log dump {shown}` prints it"))
        }
        OpenError::OtherVersion { .. } => {
            (Exit::Damaged, "nothing was changed; use the version that made it".to_owned())
        }
        OpenError::File { name, fault: FileFault::NotAFile } => (Exit::Damaged, in_the_way(name)),
        _ => {
            let look = format!("`holdfast log verify {shown}` shows it, `repair` saves the rest");
            (Exit::Damaged, format!("nothing was changed; restore it from a copy; {look}"))
        }
    };
    Problem::new(exit, what, error, remedy)
}

/// Why records cannot be read on, and what to do.
pub(super) fn replay_problem(doing: &str, directory: &Path, error: &ReplayError) -> Problem {
    let (exit, remedy) = match error {
        ReplayError::Truncated { .. } => {
            (Exit::Usage, "begin at the checkpoint that is named, or leave out --from")
        }
        ReplayError::NoKey { .. } => (Exit::Usage, "add that key to the file of --key-file"),
        ReplayError::Io(_) | ReplayError::Failed(_) => {
            (Exit::Failed, "nothing is lost; see to the disk, then do it again")
        }
        _ => (
            Exit::Damaged,
            "what was printed is whole; use a position that `dump` prints, or restore the segment",
        ),
    };
    Problem::new(exit, what(doing, directory), error, remedy)
}

/// A stretch of a log, for programs.
pub(super) fn stretch(stretch: &LsnRange) -> serde_json::Value {
    serde_json::json!({ "from_lsn": stretch.from.get(), "to_lsn": stretch.to.get() })
}

/// Something that the machine refused while a log was written.
pub(super) fn write_problem(doing: &str, directory: &Path, error: &dyn Display) -> Problem {
    let remedy = "what was reported durable is; see to the disk, then do it again";
    Problem::new(Exit::Failed, what(doing, directory), error, remedy)
}
