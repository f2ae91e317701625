//! Who has something of a file system open.
//!
//! Promise: a process with a file, a working directory, a root or a mapping of it is found, by the
//! device and whatever its path is by now; one that may not be looked at, or does not answer in
//! time, counts as having something.
//! Never: asks whoever serves the file system.

use crate::processes::{BRIEF, Process, ask_all};
use crate::unasked;
use holdfast_io::process;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Everybody with something open, and those of `copied`, who see its mount, with a mapping.
pub(super) fn users(device: &str, copied: &[u32]) -> Vec<u32> {
    let suspects: BTreeSet<u32> = copied.iter().copied().collect();
    let (device, suspected) = (device.to_owned(), suspects.clone());
    let uses = move |it: &Process| {
        let is_suspect = suspected.contains(&it.pid());
        is_open(it, &device, is_suspect) || is_suspect && may_be_mapped(it, &device)
    };
    let answers = ask_all(process::all(), BRIEF, |pid| suspects.contains(&pid), uses);
    let users = answers.into_iter().filter(|it| it.told.unwrap_or(it.counts)).map(|it| it.pid);
    users.collect()
}

/// Whether a thread of the process has a file of it, or stands in it.
fn is_open(process: &Process, device: &str, is_suspect: bool) -> bool {
    process.list("task").iter().any(|thread| thread_has(thread, device, is_suspect))
}

fn thread_has(thread: &Path, device: &str, is_suspect: bool) -> bool {
    let open = fs::read_dir(thread.join("fd"));
    let is_closed_to_us = |error: &std::io::Error| error.kind() == ErrorKind::PermissionDenied;
    if open.as_ref().err().is_some_and(is_closed_to_us) {
        return is_suspect;
    }
    let open = open.into_iter().flatten().flatten().map(|entry| entry.path());
    let open = open.chain(["cwd", "root", "exe"].map(|name| thread.join(name)));
    open.into_iter().filter_map(device_behind).any(|it| it == device)
}

fn device_behind(link: PathBuf) -> Option<String> {
    let seen = unasked::behind(&link)?;
    Some(format!("{}:{}", seen.stx_dev_major, seen.stx_dev_minor))
}

/// Whether the process has something of it mapped, as far as it may be known.
fn may_be_mapped(process: &Process, device: &str) -> bool {
    match process.mappings() {
        Ok(mut mappings) => mappings.any(|it| it.device == device),
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}
