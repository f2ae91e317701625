//! The kernel's table of mounts, and who uses what is in it.
//!
//! Promise: answers from that table alone, so a mount whose front end hangs cannot hang the answer.
//! Never: opens, stats or lists anything below a mount point.

use crate::processes::{BRIEF, Process, ask_all, is_trusted_process};
use crate::unasked;
use holdfast_client::protocol::DISK_PREFIX;
use holdfast_config::VolumeConfig;
use holdfast_io::{Shown, process};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// How many processes are named.
pub(super) const SHOWN_MAX: usize = 5;

/// One line of the kernel's table of mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What the kernel calls it, and nothing else as long as it is there; another one may have the
    /// number at once when it is gone.
    pub number: u64,
    /// The device of the file system, as the kernel numbers it.
    pub device: String,
    /// Which part of the file system is seen.
    pub root: PathBuf,
    /// Where.
    pub point: PathBuf,
    /// File system type, such as `ext4` or `fuse.holdfast`.
    pub kind: String,
    /// What is mounted; the volume's name for one of ours.
    pub source: String,
    /// The directories that an overlay is made of, by the names that they had for who mounted it.
    pub layers: Vec<PathBuf>,
    /// An overlay whose syncs do nothing.
    pub is_volatile: bool,
}

impl Mount {
    /// What is mounted, for people: anybody who may mount anything chooses it.
    pub fn whose(&self) -> Shown<'_> {
        Shown::name(&self.source)
    }

    /// Whether a line that is read later is about this mount, wherever it is by then.
    pub(crate) fn is(&self, later: &Mount) -> bool {
        let of = |it: &Mount| (it.number, it.device.clone());
        of(self) == of(later) && self.kind == later.kind && self.source == later.source
    }

    /// True if Holdfast made it.
    pub fn is_ours(&self) -> bool {
        self.kind == "fuse.holdfast"
    }
}

/// Where an absolute path leads: without links, `.` and `..`, as far as it is there. Asks nothing
/// of what is mounted there, as a path that ends with a slash would.
pub fn leads_to(path: &Path) -> PathBuf {
    let mut way = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => {
                way.push(name);
                way = std::fs::canonicalize(&way).unwrap_or(way);
            }
            Component::ParentDir => drop(way.pop()),
            _ => {}
        }
    }
    way
}

/// What is mounted at exactly this path; the topmost if several are.
pub fn mounted_at(path: &Path) -> Option<Mount> {
    let point = leads_to(path);
    all_mounts().into_iter().rev().find(|mount| mount.point == point)
}

/// What an absolute path without links is seen in: the nearest mount, of several the topmost.
pub(crate) fn mount_above(path: &Path) -> Option<Mount> {
    let above = all_mounts().into_iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.as_os_str().len())
}

/// Everything that is mounted, in the kernel's order.
pub fn all_mounts() -> Vec<Mount> {
    parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// Everything that is mounted where a process sees it.
pub(crate) fn mounts_of(process: &Process) -> Vec<Mount> {
    parse(&process.mounts(|_| true).unwrap_or_default())
}

/// What Holdfast mounted where a volume is to be seen.
pub fn our_mount_of(volume: &VolumeConfig) -> Option<Mount> {
    volume.mount.as_deref().and_then(mounted_at).filter(Mount::is_ours)
}

/// The source of a disk's mount: no volume has this name.
pub fn disk_source(name: &str) -> String {
    format!("{DISK_PREFIX}{name}")
}

/// What Holdfast mounted here from this source.
pub fn our_mount_at(point: &Path, source: &str) -> Option<Mount> {
    mounted_at(point).filter(|mount| mount.is_ours() && mount.source == source)
}

/// Mounts in the order of the table. Lines that are not understood are left out.
pub(super) fn parse(table: &[u8]) -> Vec<Mount> {
    table.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// `36 35 98:0 /root /point options [optional ...] - type source options`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let path = |field: &[u8]| PathBuf::from(OsString::from_vec(unescaped(field)));
    let number = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let device = String::from_utf8_lossy(fields.nth(1)?).into_owned();
    let (root, point) = (path(fields.next()?), path(fields.next()?));
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let text = |field: &[u8]| String::from_utf8_lossy(&unescaped(field)).into_owned();
    let (kind, source) = (text(fields.next()?), text(fields.next()?));
    let options = fields.next().unwrap_or_default();
    let is_overlay = kind == "overlay";
    let layers = if is_overlay { layers_of(options) } else { Vec::new() };
    // Newer kernels say which of several ways it is.
    let syncs_nothing = |it: &[u8]| it == b"volatile" || it == b"fsync=volatile";
    let is_volatile = is_overlay && options.split(|byte| *byte == b',').any(syncs_nothing);
    Some(Mount { number, device, root, point, kind, source, layers, is_volatile })
}

/// `rw,lowerdir=/one:/two,upperdir=/three,workdir=/four`; what has several names has one a key in
/// newer kernels, and the colon in a name is `\:` in older ones.
fn layers_of(options: &[u8]) -> Vec<PathBuf> {
    const KEYS: [&[u8]; 5] = [b"lowerdir", b"lowerdir+", b"datadir+", b"upperdir", b"workdir"];
    let mut layers: Vec<PathBuf> = Vec::new();
    for option in options.split(|byte| *byte == b',') {
        let Some(at) = option.iter().position(|byte| *byte == b'=') else { continue };
        if !KEYS.contains(&&option[..at]) {
            continue;
        }
        let mut name = Vec::new();
        for part in option[at + 1..].split(|byte| *byte == b':') {
            name.extend(unescaped(part));
            match name.pop_if(|last| *last == b'\\') {
                Some(_) => name.push(b':'),
                None => layers.push(OsString::from_vec(std::mem::take(&mut name)).into()),
            }
        }
    }
    layers
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

/// The processes that use a mount, for people: `postgres (pid 12), bash (pid 13)`.
pub fn users_text(path: &Path) -> String {
    let (users, silent) = users(path);
    match (users.is_empty(), silent.is_empty()) {
        (false, _) => process::all_named(&users, SHOWN_MAX),
        (true, false) => format!(
            "somebody, perhaps by {}, of whom the kernel does not tell what they have open",
            process::all_named(&silent, SHOWN_MAX)
        ),
        (true, true) => "the kernel or a process of another namespace".into(),
    }
}

/// Processes with a file or directory of the mount, or with their root or working directory below
/// its path, and those that do not tell. The keeper and the front end have the home that a mount
/// may cover, and are none.
fn users(path: &Path) -> (Vec<u32>, Vec<u32>) {
    let point = leads_to(path);
    let mount = Used { number: mounted_at(&point).map(|mount| mount.number), point };
    let look = move |it: &Process| mount.is_used_by(it);
    let answers = ask_all(process::all(), BRIEF, is_trusted_process, look);
    let those = |told: Option<bool>| {
        answers.iter().filter(move |it| it.told == told).map(|it| it.pid).collect()
    };
    (those(Some(true)), those(None))
}

/// A mount that may be in use.
struct Used {
    point: PathBuf,
    number: Option<u64>,
}

impl Used {
    fn is_used_by(&self, process: &Process) -> bool {
        let below = |link: &Path| match std::fs::read_link(link) {
            Ok(to) => self.has(&to),
            // Its name is too long to be told; on which mount it is, is not.
            Err(error) if error.kind() == ErrorKind::InvalidFilename => {
                unasked::behind(link).is_some_and(|seen| Some(seen.stx_mnt_id) == self.number)
            }
            Err(_) => false,
        };
        let is_open = |link: PathBuf| {
            let info = process.at("fdinfo").join(link.file_name().unwrap_or_default());
            below(&link) && self.is_of(&info)
        };
        let stands = ["cwd", "root"].iter().any(|name| below(&process.at(name)));
        stands && !is_our_own(process.pid()) || process.list("fd").into_iter().any(is_open)
    }

    fn has(&self, path: &Path) -> bool {
        path.starts_with(&self.point)
    }

    /// Whether an open file is of this mount, and not of what it covers.
    fn is_of(&self, fdinfo: &Path) -> bool {
        let text = std::fs::read_to_string(fdinfo).unwrap_or_default();
        let of = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
        self.number.is_none() || of.is_none() || of == self.number
    }
}

/// True for processes that serve.
fn is_our_own(pid: u32) -> bool {
    let ours = ["holdfast", "holdfast-front", "holdfast-serve"];
    process::name(pid).is_some_and(|name| ours.iter().any(|our| name == *our))
}

#[cfg(test)]
mod tests;
