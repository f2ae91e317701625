//! `holdfast store backup`.
//!
//! Promise: a directory from which the store can be made again without the old one, on the disk; a
//! backup that is brought forward is one all the time.
//! Never: overwrites a backup.

use super::door::Door;
use super::restore;
use crate::cli::store::StoreArgs;
use crate::output::{Output, Progress};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_pages::{BackupError as PagesError, RestoreError};
use holdfast_process::link;
use holdfast_process::store_refused::refused;
use holdfast_store::{BackUpError, OpenError, Progress as Done};
use std::path::Path;

/// Makes a backup, or brings one forward.
pub(super) fn backup(
    door: Door<'_>,
    from: &StoreArgs,
    to: &Path,
    forward: bool,
    output: Output,
) -> Outcome<()> {
    let opened = door.open("backing up", from)?;
    let mut progress = Progress::of_bytes(if forward { "bringing forward" } else { "copying" });
    let tell = &mut |at: Done| progress.done(at.done_bytes, at.total_bytes);
    let made = match forward {
        true => opened.store.forward(to, tell),
        false => opened.store.back_up(to, tell),
    };
    drop(progress);
    let what = opened.what();
    let made = made.map_err(|error| problem(what, to, &error))?;
    opened.close()?;
    let (newest, end) = (made.newest.get(), made.end.get());
    let json = serde_json::json!({ "oldest_rsn": newest, "newest_rsn": end });
    let text = format!(
        "{} can be made a store as it was at rsn:{newest} to rsn:{end}: holdfast store restore",
        to.display()
    );
    output.result(&json, &text);
    Ok(())
}

fn problem(what: String, to: &Path, error: &BackUpError) -> Problem {
    const UNCHANGED: &str = "the store is as it was; see to the cause, then do it again";
    let what = format!("{what} to {}", to.display());
    let (exit, remedy) = match error {
        BackUpError::Exists => {
            (Exit::Usage, "nothing was changed; add --forward, or name another directory")
        }
        BackUpError::OtherHistory => {
            (Exit::Usage, "nothing was changed; leave out --forward, and name an empty directory")
        }
        BackUpError::To(OpenError::NotAStore) => {
            (Exit::Usage, "nothing was changed; name a backup of this store, or an empty directory")
        }
        BackUpError::To(error) => return refused(what, to, error),
        BackUpError::Pages(PagesError::Restore(RestoreError::Io(error)))
            if let Some(problem) = link::problem(&what, to, error) =>
        {
            return problem;
        }
        BackUpError::Pages(error) => (exit_of(error), UNCHANGED),
        _ => (Exit::Failed, UNCHANGED),
    };
    Problem::new(exit, what, error, remedy)
}

/// What pages that were not copied say to scripts.
fn exit_of(error: &PagesError) -> Exit {
    match error {
        PagesError::Restore(error) => restore::exit_of(error),
        PagesError::Fetch(_) | PagesError::Lost(_) => Exit::Damaged,
        _ => Exit::Failed,
    }
}
