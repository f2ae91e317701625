//! Other processes, as far as the kernel tells of them without waiting for anybody.
//!
//! Promise: a process that has ended, or that is being ended, is not taken for one that goes on;
//! one that holds its own locks, in an `execve` or a change of its memory, keeps nobody waiting.
//! Never: signals one; remembers that its number may by now be another's: that is the caller's.

use crate::Shown;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;

/// The bit of a kill that waits until the process comes back from what it does in the kernel.
const KILLED: u64 = 1 << (9 - 1);

/// The processes that there are, by number.
#[must_use]
pub fn all() -> Vec<u32> {
    numbers_in("/proc")
}

fn numbers_in(directory: &str) -> Vec<u32> {
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
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

/// Who it belongs to: the user that it acts as, or root if it may not be looked into.
#[must_use]
pub fn owner(pid: u32) -> Option<u32> {
    Some(std::fs::metadata(format!("/proc/{pid}")).ok()?.uid())
}

/// What the kernel tells of it in lines of a key and words.
#[must_use]
pub fn status(pid: u32) -> Option<String> {
    text(&format!("/proc/{pid}/status"))
}

/// The same of one of its threads.
#[must_use]
pub fn status_of_thread(pid: u32, thread: u32) -> Option<String> {
    text(&format!("/proc/{pid}/task/{thread}/status"))
}

/// Its threads, by number.
#[must_use]
pub fn threads(pid: u32) -> Vec<u32> {
    numbers_in(&format!("/proc/{pid}/task"))
}

/// What its first thread has started and not yet asked for.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Who started it, if somebody is there who did.
#[must_use]
pub fn parent(pid: u32) -> Option<u32> {
    field(&status(pid)?, "PPid")?.parse().ok().filter(|parent| *parent > 0)
}

/// The users of its namespace, as this process sees them.
#[must_use]
pub fn user_map(pid: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/uid_map")).ok()
}

/// The name in it may be anything.
fn text(path: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
}

/// What a line of a status says.
#[must_use]
pub fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    let of = |line: &'a str| line.strip_prefix(key)?.strip_prefix(':').map(str::trim);
    status.lines().find_map(of)
}

/// The letter for what a process or a thread does.
#[must_use]
pub fn state(status: &str) -> Option<char> {
    field(status, "State")?.chars().next()
}

/// Whether a process goes on. One that was killed does not, although it is listed until whoever
/// started it has asked for its end, which some never do.
#[must_use]
pub fn lives(pid: u32) -> bool {
    status(pid).is_some_and(|told| goes_on(&told))
}

fn goes_on(told: &str) -> bool {
    let is_killed = |key: &str| {
        let pending = field(told, key).and_then(|bits| u64::from_str_radix(bits, 16).ok());
        pending.is_some_and(|bits| bits & KILLED != 0)
    };
    // Who has let go of his memory lets go of the rest.
    let has_memory = field(told, "VmSize").is_some();
    let has_ended = matches!(state(told), None | Some('Z' | 'X'));
    !has_ended && has_memory && !is_killed("SigPnd") && !is_killed("ShdPnd")
}

#[cfg(test)]
mod tests;
