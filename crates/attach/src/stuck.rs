//! What the cleaner of a volume is stuck at, as the files beside its log say.
//!
//! Promise: a log that cannot be looked at is stuck at nothing.
//! Never: changes anything.

use holdfast_io::real::RealFiles;
use holdfast_volume::{put_aside, stuck_at};
use std::path::Path;

/// What a volume's cleaner is stuck at, in one line, and how many records are aside. A log that
/// cannot be looked at has neither.
pub fn state_of(log: &Path) -> (Option<String>, u64) {
    let Ok(files) = RealFiles::open(log) else { return (None, 0) };
    let stuck = stuck_at(&files).ok().flatten();
    let count = put_aside(&files).map_or(0, |aside| aside.len() as u64);
    (stuck.map(|told| in_one_line(&told)), count)
}

/// Lines of a key and a value, but for the error.
pub fn in_one_line(told: &str) -> String {
    told.lines().collect::<Vec<_>>().join("; ")
}
