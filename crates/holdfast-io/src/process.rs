//! Other processes, as the kernel tells of them.
//!
//! Promise: a process that has ended, or that is being ended, is not taken for one that goes on.
//! Never: signals one; remembers that its number may by now be another's: that is the caller's.

use crate::Shown;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Where the state, the flags and the pending signals stand behind the name in `/proc/PID/stat`.
const STATE: usize = 0;
const FLAGS: usize = 6;
const PENDING: usize = 28;

/// The kernel's flag of a process that is letting go of what it has.
const EXITING: u64 = 0x4;
/// The bit of a kill that waits until the process comes back from what it does in the kernel.
const KILLED: u64 = 1 << (9 - 1);

/// The processes that there are, by number.
#[must_use]
pub fn all() -> Vec<u32> {
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(number).collect();
    pids.sort_unstable();
    pids
}

/// What a process calls itself, which can be anything.
#[must_use]
pub fn name(pid: u32) -> Option<OsString> {
    let mut name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    name.pop_if(|last| *last == b'\n');
    Some(OsString::from_vec(name))
}

/// A process for people: `postgres (pid 12)`.
#[must_use]
pub fn named(pid: u32) -> String {
    format!("{} (pid {pid})", Shown::name(&name(pid).unwrap_or_default()))
}

/// Processes for people, as many of them as this.
#[must_use]
pub fn all_named(pids: &[u32], shown_max: usize) -> String {
    let shown: Vec<String> = pids.iter().take(shown_max).map(|pid| named(*pid)).collect();
    let more = pids.len().saturating_sub(shown_max);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}

/// Whether a process goes on. One that was killed does not, although it is listed until whoever
/// started it has asked for its end, which some never do.
#[must_use]
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|told| goes_on(&told))
}

fn goes_on(told: &str) -> bool {
    // The name before it may hold anything.
    let Some((_, told)) = told.rsplit_once(')') else { return false };
    let fields: Vec<&str> = told.split_ascii_whitespace().collect();
    let has = |field: usize, bit: u64| {
        fields
            .get(field)
            .and_then(|text| text.parse::<u64>().ok())
            .is_some_and(|set| set & bit != 0)
    };
    let has_ended = matches!(fields.get(STATE), None | Some(&("Z" | "X")));
    !has_ended && !has(FLAGS, EXITING) && !has(PENDING, KILLED)
}

#[cfg(test)]
mod tests;
