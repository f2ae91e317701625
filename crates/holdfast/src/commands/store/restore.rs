//! `holdfast store restore`.
//!
//! Promise: a store as it was at the moment that was asked for, on the disk, or no store.
//! Never: changes what it is made from; overwrites anything.

use super::what;
use crate::exit::Exit;
use crate::moment::time;
use crate::output::{Output, Progress};
use crate::problem::{Outcome, Problem};
use holdfast_pages::{At, RestoreError as PagesError};
use holdfast_store::{Config, OpenError, RestoreError};
use std::path::Path;

/// Makes a store of a backup, or of one that is closed.
pub(super) fn restore(from: &Path, to: &Path, at: Option<At>, output: Output) -> Outcome<()> {
    let (at, config) = (at.unwrap_or(At::End), Config::default());
    let mut progress = Progress::of_bytes("copying");
    let made = holdfast_store::restore(from, at, to, &config, &mut |at| {
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
    const UNCHANGED: &str = "what it is made from is as it was";
    let (exit, remedy) = match error {
        RestoreError::From(OpenError::InUse) | RestoreError::To(OpenError::InUse) => {
            (Exit::InUse, "end the program that has it open first".to_owned())
        }
        RestoreError::From(OpenError::NotAStore) => {
            (Exit::Usage, "name a backup, or the directory of a store".to_owned())
        }
        RestoreError::Exists
        | RestoreError::To(OpenError::NotAStore)
        | RestoreError::Pages(PagesError::NotEmpty) => {
            (Exit::Usage, "nothing was changed; name an empty directory".to_owned())
        }
        RestoreError::Pages(PagesError::Outside { oldest, newest }) => {
            let (oldest, newest) = (time(oldest.utc_ns), time(newest.utc_ns));
            (Exit::Usage, format!("that is from {oldest} to {newest}; or leave out --at"))
        }
        RestoreError::From(OpenError::Io(_))
        | RestoreError::To(_)
        | RestoreError::Pages(PagesError::Io(_) | PagesError::Pages(_)) => {
            (Exit::Failed, format!("{UNCHANGED}; see to the cause, then do it again"))
        }
        _ => (Exit::Damaged, format!("{UNCHANGED}; use another backup")),
    };
    let what = format!("{} in {}", what("making again", from), to.display());
    Problem::new(exit, what, error, remedy)
}
