//! Of which configuration a keeper is.
//!
//! Promise: a command and a keeper that were told of different files know it; one file by several
//! names is one, and whoever says nothing of a file is taken as having the same.
//! Never: reads what is in a file.

use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What is said of a file: where it is when every link is followed, as far as that is known.
///
/// It is told anew each time: a link may lead to the next version of a file by now, for both.
pub(crate) fn told(file: &Path) -> String {
    let leads_to = fs::canonicalize(file);
    leads_to.as_deref().unwrap_or(file).to_string_lossy().into_owned()
}

/// Refuses what a command wants whose configuration is `mine`, of a keeper that has `theirs`.
pub fn refuse_other_file(what: &str, mine: Option<&Path>, theirs: Option<&str>) -> Outcome<()> {
    refuse_other(what, mine.map(told).as_deref(), theirs)
}

/// [`refuse_other_file`] of what was [`told`].
pub(super) fn refuse_other(what: &str, mine: Option<&str>, theirs: Option<&str>) -> Outcome<()> {
    let (Some(mine), Some(theirs)) = (mine, theirs) else { return Ok(()) };
    if mine == theirs || is_one_file(mine, theirs) {
        return Ok(());
    }
    let why = format!("the keeper there has the configuration {theirs}, and this command {mine}");
    let remedy = format!(
        "name the keeper's with --config {theirs} or in HOLDFAST_CONFIG; or, for a keeper of its \
         own, give {mine} a socket of its own in [keeper], and one in [server]"
    );
    Err(Problem::new(Exit::InUse, what, why, remedy))
}

/// Links and mounts give a file several names that nobody can follow to one.
fn is_one_file(one: &str, other: &str) -> bool {
    let number = |file| fs::metadata(file).ok().map(|it| (it.dev(), it.ino()));
    number(one).is_some_and(|it| number(other) == Some(it))
}

#[cfg(test)]
mod tests;
