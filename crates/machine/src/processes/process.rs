//! One process, for as long as it is looked at.
//!
//! Promise: what the kernel tells of it, whole, whatever names are in it.
//! Never: is made anywhere but by a thread that may wait.

use crate::raw::share_files;
use holdfast_io::process::{state, status_of_thread, threads};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// As much of a table as is read at once.
const TABLE_BYTES: usize = 1 << 16;

/// As much of a table of mounts as tells it from others: the kernel gives no two mounts a number.
const HEAD_BYTES: u64 = 4096;

/// A process that is being looked at.
#[derive(Debug)]
pub struct Process(u32);

/// A part of a file that a process has mapped.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where, as the names in `map_files` are.
    pub range: String,
    /// The device, as the table of mounts has it.
    pub(crate) device: String,
    /// The file, as the kernel names it.
    pub path: PathBuf,
}

impl Process {
    pub(super) fn new(pid: u32) -> Process {
        Process(pid)
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.0
    }

    /// Those of its threads that have descriptors, a working directory, or a view of what is
    /// mounted that are not those of the process itself: each is looked at like a process. Where
    /// the first thread has ended it has nothing any more, and another one tells for all that share
    /// with it.
    pub fn apart(&self) -> Vec<Process> {
        let mut others = threads(self.0);
        others.retain(|thread| *thread != self.0);
        let mut known = (!others.is_empty() && !self.has_ended()).then_some(self.0);
        others.retain(|thread| {
            let shares = known.is_some_and(|known| share_files(known, *thread) == Some(true));
            known = known.or(Some(*thread));
            !shares
        });
        others.into_iter().map(Process).collect()
    }

    /// Whether its first thread has ended, whatever the others do.
    fn has_ended(&self) -> bool {
        let told = status_of_thread(self.0, self.0);
        told.is_none_or(|told| matches!(state(&told), None | Some('Z' | 'X')))
    }

    /// The place of something that the kernel tells of it.
    pub fn at(&self, what: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{what}", self.0))
    }

    /// What one of its links says.
    pub fn link(&self, name: &str) -> Option<PathBuf> {
        fs::read_link(self.at(name)).ok()
    }

    /// What is in one of its directories.
    pub fn list(&self, name: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.at(name)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// A copy of one of its descriptors.
    pub(crate) fn descriptor(&self, number: &str) -> Option<OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(self.0).ok()?)?;
        let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        pidfd_getfd(&process, number.parse().ok()?, PidfdGetfdFlags::empty()).ok()
    }

    /// The table of mounts that it sees: its beginning, and, if that is new, all of it.
    pub(crate) fn mounts(&self, is_new: impl FnOnce(&[u8]) -> bool) -> Option<Vec<u8>> {
        let mut table = Vec::new();
        let mut file = File::open(self.at("mountinfo")).ok()?;
        (&mut file).take(HEAD_BYTES).read_to_end(&mut table).ok()?;
        if is_new(&table) {
            file.read_to_end(&mut table).ok()?;
        }
        Some(table)
    }

    /// What it has mapped of files, one after another, in one pass over the table.
    pub fn mappings(&self) -> io::Result<impl Iterator<Item = Mapping>> {
        let table = BufReader::with_capacity(TABLE_BYTES, File::open(self.at("maps"))?);
        Ok(table.split(b'\n').map_while(Result::ok).filter_map(|line| mapping(&line)))
    }
}

/// `start-end permissions offset major:minor inode path`, of which all but the path is in
/// hexadecimal. Newlines in a path are escaped; a backslash is none.
fn mapping(line: &[u8]) -> Option<Mapping> {
    const PATH: usize = 5;
    let mut fields = line.splitn(PATH + 1, |byte| *byte == b' ');
    let mut text = |skipped| std::str::from_utf8(fields.nth(skipped)?).ok();
    let (range, device) = (text(0)?.to_owned(), text(2)?);
    let (major, minor) = device.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let device = format!("{}:{}", number(major)?, number(minor)?);
    let path = fields.nth(1)?.trim_ascii_start();
    path.starts_with(b"/").then(|| Mapping { range, device, path: path_of(path) })
}

fn path_of(escaped: &[u8]) -> PathBuf {
    const NEWLINE: &[u8] = b"\\012";
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((first, tail)) = rest.split_first() {
        let is_newline = rest.starts_with(NEWLINE);
        bytes.push(if is_newline { b'\n' } else { *first });
        rest = if is_newline { &rest[NEWLINE.len()..] } else { tail };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests;
