//! The places of what is put aside.
//!
//! Promise: beside what it was, by a name that says so; nothing that is there already is named.
//! Never: moves anything.

use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Behind the name of a log that was put aside stands this, and a number.
const ASIDE: &str = ".aside-";

/// `/a/log` -> `/a/log.aside-SECONDS`, the first that is free.
pub(super) fn aside(log: &Path) -> PathBuf {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let named = |number| {
        let mut path = log.as_os_str().to_owned();
        path.push(format!("{ASIDE}{number}"));
        PathBuf::from(path)
    };
    (seconds..).map(named).find(|path| !path.exists()).expect("there are fewer logs than numbers")
}

/// What was put aside of a log or a region, oldest first.
pub(super) fn asides(log: &Path) -> Vec<PathBuf> {
    let mut start = log.file_name().unwrap_or_default().to_owned();
    start.push(ASIDE);
    let is_aside = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        name.starts_with(start.as_encoded_bytes())
    };
    let beside = log.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let paths = beside.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut asides: Vec<_> = paths.filter(is_aside).collect();
    asides.sort();
    asides
}

/// What could not be put aside.
pub(super) fn unmoved(what: String, error: std::io::Error) -> Problem {
    Problem::new(Exit::Failed, what, error, "nothing was changed; stop what uses that memory")
}
