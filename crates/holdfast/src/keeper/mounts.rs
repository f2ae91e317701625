//! Mount points.
//!
//! Promise: answers from the kernel's table alone, so a mount whose front end hangs cannot hang the
//! answer.
//! Never: opens, stats or lists anything below a mount point.

use crate::config::VolumeConfig;
use crate::exit::Exit;
use crate::problem::{Outcome, Problem};
use holdfast_client::protocol::DISK_PREFIX;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One line of the kernel's table of mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Where.
    pub point: PathBuf,
    /// File system type, such as `ext4` or `fuse.holdfast`.
    pub kind: String,
    /// What is mounted; the volume's name for one of ours.
    pub source: String,
}

impl Mount {
    /// True if Holdfast made it.
    pub(crate) fn is_ours(&self) -> bool {
        self.kind == "fuse.holdfast"
    }
}

/// What is mounted at exactly this path; the topmost if several are.
/// Links in the path are followed, which asks nothing of what is mounted there.
pub(crate) fn mounted_at(path: &Path) -> Option<Mount> {
    let point = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    parse(&table).into_iter().rev().find(|mount| mount.point == point)
}

/// What Holdfast mounted where a volume is to be seen.
pub(crate) fn our_mount_of(volume: &VolumeConfig) -> Option<Mount> {
    volume.mount.as_deref().and_then(mounted_at).filter(Mount::is_ours)
}

/// The source of a disk's mount: no volume has this name.
pub(crate) fn disk_source(name: &str) -> String {
    format!("{DISK_PREFIX}{name}")
}

/// What Holdfast mounted here from this source.
pub(crate) fn our_mount_at(point: &Path, source: &str) -> Option<Mount> {
    mounted_at(point).filter(|mount| mount.is_ours() && mount.source == source)
}

/// Takes away what is mounted here from this source if no program uses it; true if nothing is left.
pub(crate) fn unmount_idle(point: &Path, source: &str) -> bool {
    our_mount_at(point, source).is_none_or(|_| unmount_at(point, false).is_ok())
}

/// Mounts in the order of the table. Lines that are not understood are left out.
fn parse(table: &[u8]) -> Vec<Mount> {
    table.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// `36 35 98:0 /root /point options [optional ...] - type source options`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let point = PathBuf::from(OsString::from_vec(unescaped(fields.nth(4)?)));
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let text = |field: &[u8]| String::from_utf8_lossy(&unescaped(field)).into_owned();
    Some(Mount { point, kind: text(fields.next()?), source: text(fields.next()?) })
}

/// Undoes the kernel's `\040` for a space and the like.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|_| *first == b'\\');
        let code = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

/// Unmounts. With `force` the connection is cut: programs that use the mount get errors, and the
/// name is free at once. What they were told is stable stays stable either way.
pub(crate) fn unmount_at(path: &Path, force: bool) -> Outcome<()> {
    let what = || format!("unmounting {}", path.display());
    if !force {
        return unmount(path, UnmountFlags::empty()).map_err(|error| match error {
            Errno::BUSY => {
                let why = format!("it is in use by {}", users_text(path));
                Problem::new(Exit::InUse, what(), why, "stop them and try again, or use --force")
            }
            error => Problem::new(Exit::Failed, what(), error, "unmounting needs root"),
        });
    }
    // The first call ends the connection and is refused while files are open, the second one takes
    // the name away; a refusal of the first is no reason to leave the name.
    let _ = unmount(path, UnmountFlags::FORCE);
    match mounted_at(path).is_some_and(|mount| mount.is_ours()) {
        true => unmount(path, UnmountFlags::DETACH)
            .map_err(|error| Problem::new(Exit::Failed, what(), error, "unmounting needs root")),
        false => Ok(()),
    }
}

/// The processes that use a mount, for people: `postgres (pid 12), bash (pid 13)`.
pub(crate) fn users_text(path: &Path) -> String {
    let users = users(path);
    let named = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{} (pid {pid})", name.trim_end())
    };
    match users.len() {
        0 => "the kernel or a process of another namespace".into(),
        count if count > 5 => {
            let first: Vec<String> = users.iter().take(5).map(named).collect();
            format!("{} and {} more", first.join(", "), count - 5)
        }
        _ => users.iter().map(named).collect::<Vec<_>>().join(", "),
    }
}

/// Processes with a file, directory or root below the path.
fn users(path: &Path) -> Vec<u32> {
    let point = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let pids = processes.flatten().filter_map(number);
    let mut pids: Vec<u32> = pids.filter(|pid| uses(*pid, &point)).collect();
    pids.sort_unstable();
    pids
}

fn uses(pid: u32, point: &Path) -> bool {
    let below = |link: PathBuf| std::fs::read_link(link).is_ok_and(|to| to.starts_with(point));
    let of = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
    let open = std::fs::read_dir(of("fd")).into_iter().flatten().flatten();
    below(of("cwd")) || below(of("root")) || open.map(|entry| entry.path()).any(below)
}

#[cfg(test)]
mod tests;
