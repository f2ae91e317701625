//! Who has something of a file system open.
//!
//! Promise: a process with a file, a working directory, a root or a mapping of it is found, by the
//! device and whatever its path is by now; one that may not be looked at, or does not answer in
//! time, counts as having something.
//! Never: asks whoever serves the file system; waits for longer than [`PATIENCE`] for a table of
//! mappings.

use crate::keeper::unasked;
use holdfast_io::process;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// How long the table of a process's mappings may take: it waits for what changes them.
const PATIENCE: Duration = Duration::from_secs(1);

/// Everybody with something open, and those of `copied`, who see its mount, with a mapping.
pub(super) fn users(device: &str, copied: &[u32]) -> Vec<u32> {
    let uses = |pid: &u32| {
        let is_mapped = || copied.contains(pid) && may_be_mapped(*pid, device);
        is_open(*pid, device, copied.contains(pid)) || is_mapped()
    };
    process::all().into_iter().filter(uses).collect()
}

/// Whether a thread of the process has a file of it, or stands in it.
fn is_open(pid: u32, device: &str, is_suspect: bool) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.map(|thread| thread.path()).any(|thread| thread_has(&thread, device, is_suspect))
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

/// Whether the process has something of it mapped, as far as it is known in time.
fn may_be_mapped(pid: u32, device: &str) -> bool {
    let (answers, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let _nobody_waits = answers.send(fs::read_to_string(format!("/proc/{pid}/maps")));
    });
    match answer.recv_timeout(PATIENCE) {
        Ok(Ok(maps)) => maps.lines().filter_map(device_of).any(|it| it == device),
        Ok(Err(error)) => error.kind() == ErrorKind::PermissionDenied,
        Err(_) => true,
    }
}

/// `start-end permissions offset major:minor inode path`, in hexadecimal.
fn device_of(mapping: &str) -> Option<String> {
    let (major, minor) = mapping.split_ascii_whitespace().nth(3)?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    Some(format!("{}:{}", number(major)?, number(minor)?))
}
