//! `holdfast store restore`.
//!
//! Promise: a store as it was at the moment that was asked for, on the disk, or no store.
//! Never: changes what it is made from; overwrites anything.

use super::door::Door;
use super::opened::what;
use crate::cli::store::StoreArgs;
use crate::moment::time;
use crate::output::{Output, Progress};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_pages::{At, OpenArchiveError, RestoreError as PagesError, RunFault};
use holdfast_process::link;
use holdfast_process::store_refused::refused;
use holdfast_store::{OpenError, RestoreError};
use std::path::Path;

/// What is said whatever happened.
const UNCHANGED: &str = "what it is made from is as it was";

/// Makes a store of a backup, or of one that is closed.
pub(super) fn restore(
    door: Door<'_>,
    from: &Path,
    store: &StoreArgs,
    at: Option<At>,
    output: Output,
) -> Outcome<()> {
    let (to, at) = (&store.directory, at.unwrap_or(At::End));
    door.check_source("making again", from)?;
    let mut progress = Progress::of_bytes("copying");
    let made = holdfast_store::restore(from, at, to, &store.config(), &mut |at| {
        progress.done(at.done_bytes, at.total_bytes);
    });
    drop(progress);
    let moment = made.map_err(|error| problem(from, to, &error))?;
    let (rsn, lsn, utc) = (moment.rsn.get(), moment.lsn.get(), time(moment.utc_ns));
    let json = serde_json::json!({ "rsn": rsn, "lsn": lsn, "time": utc });
    let text = format!("a store as it was at {utc}, rsn:{rsn}, lsn:{lsn}: {}", to.display());
    output.result(&json, &text);
    Ok(())
}

fn problem(from: &Path, to: &Path, error: &RestoreError) -> Problem {
    let doing = format!("{} in {}", what("making again", from), to.display());
    let (exit, remedy) = match error {
        RestoreError::NotClosed => {
            let open = format!("`holdfast store open {}` closes it", from.display());
            (Exit::Usage, format!("{UNCHANGED}; {open}, or add --at"))
        }
        RestoreError::From(OpenError::NotAStore) => {
            (Exit::Usage, "name a backup, or the directory of a store".to_owned())
        }
        RestoreError::Exists
        | RestoreError::To(OpenError::NotAStore)
        | RestoreError::Pages(PagesError::NotEmpty) => {
            (Exit::Usage, "nothing was changed; name an empty directory".to_owned())
        }
        RestoreError::From(error) => return refused(doing, from, error),
        RestoreError::To(error) => return refused(doing, to, error),
        RestoreError::Pages(PagesError::Io(error))
            if let Some(problem) = link::problem(&doing, from, error) =>
        {
            return problem;
        }
        RestoreError::Pages(error) => (exit_of(error), remedy(error)),
        _ => (Exit::Damaged, format!("{UNCHANGED}; use another backup")),
    };
    Problem::new(exit, doing, error, remedy)
}

/// What pages that were not made say to scripts.
pub(super) fn exit_of(error: &PagesError) -> Exit {
    match error {
        PagesError::NotEmpty | PagesError::Outside { .. } => Exit::Usage,
        PagesError::Io(_)
        | PagesError::Pages(_)
        | PagesError::Archive(RunFault::Io(_))
        | PagesError::Open(OpenArchiveError::Io(_)) => Exit::Failed,
        _ => Exit::Damaged,
    }
}

fn remedy(error: &PagesError) -> String {
    match (error, exit_of(error)) {
        (PagesError::Outside { oldest, newest }, _) => {
            let (oldest, newest) = (time(oldest.utc_ns), time(newest.utc_ns));
            format!("that is from {oldest} to {newest}; or leave out --at")
        }
        (_, Exit::Failed) => format!("{UNCHANGED}; see to the cause, then do it again"),
        _ => format!("{UNCHANGED}; use another backup"),
    }
}
