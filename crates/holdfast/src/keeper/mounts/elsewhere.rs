//! Who keeps a file system that was unmounted here.
//!
//! Promise: every process that sees a mount of it in a mount namespace of its own, and every place
//! where it is mounted here too, is named; where there is none, the processes that have it open.
//! Never: asks whoever serves the file system, so that one who hangs cannot hang the answer.

use super::served::{has_ended, is_connected};
use super::{Mount, SHOWN_MAX, all_mounts, covered_by, covered_text, leads_to, parse};
use crate::keeper::unasked;
use holdfast_io::{Shown, process};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long somebody may keep it who only passes by: a program that copies the table of mounts when
/// it starts, and takes away from its copy what it does not need.
pub(crate) const PASSING: Duration = Duration::from_secs(3);

/// A file system that the keeper mounted.
#[derive(Debug)]
pub(crate) struct FileSystem {
    device: String,
    /// Of the mount that the keeper made.
    number: u64,
    /// Until it has ended, no other file system gets the number of the device.
    connection: Weak<OwnedFd>,
}

impl FileSystem {
    /// What is mounted over this connection.
    pub(crate) fn of(
        mount: Option<Mount>,
        connection: Option<&Arc<OwnedFd>>,
    ) -> Option<FileSystem> {
        let Mount { device, number, .. } = mount?;
        Some(FileSystem { device, number, connection: Arc::downgrade(connection?) })
    }

    /// The mount that the keeper made, wherever it is by now, if it is there.
    pub(crate) fn mount(&self) -> Option<Mount> {
        let is_it = |mount: &Mount| mount.number == self.number && mount.device == self.device;
        let mount = all_mounts().into_iter().find(is_it)?;
        // One that was cut off is still in the way.
        (self.is_connected() || mount.is_ours() && has_ended(&mount.point)).then_some(mount)
    }

    /// Why it is not seen where programs look for it, and how it is again, if it is served and not
    /// seen there.
    pub(crate) fn out_of_place(&self, name: &str, point: &Path) -> Option<(String, String)> {
        if !self.is_connected() {
            // Whoever serves it learns that.
            return None;
        }
        let shown = point.display();
        let again = format!("`holdfast umount {name}`, then `holdfast mount {name}`");
        match self.mount() {
            None => {
                let who = self.kept_by().unwrap_or_else(|| "somebody keeps it".to_owned());
                let why = format!("it is unmounted at {shown}, and goes on being served: {who}");
                Some((why, again))
            }
            Some(mount) if mount.point != leads_to(point) => {
                Some((format!("it is mounted at {}, not at {shown}", at(&mount)), again))
            }
            Some(mount) => covered_by(&mount).map(|over| {
                (covered_text(&over), format!("unmount that: `umount {}`", over.point.display()))
            }),
        }
    }

    /// Who keeps it, for people; nothing if nobody is seen to.
    pub(crate) fn kept_by(&self) -> Option<String> {
        kept_by(&self.device).filter(|_| self.is_connected())
    }

    fn is_connected(&self) -> bool {
        self.connection.upgrade().is_some_and(|connection| is_connected(&connection))
    }
}

/// Who keeps the file system that has this device now, for people; nothing if nobody is seen to.
pub(crate) fn kept_by(device: &str) -> Option<String> {
    let tables = tables();
    let kept: Vec<String> = tables.iter().filter_map(|table| table.text(device)).collect();
    if !kept.is_empty() {
        return Some(kept.join("; "));
    }
    let has_it = |pid: &u32| is_open(*pid, device);
    let users: Vec<u32> = process::all().into_iter().filter(has_it).collect();
    (!users.is_empty()).then(|| format!("{} has it open", process::all_named(&users, SHOWN_MAX)))
}

/// What the processes of one mount namespace see.
struct Table {
    is_ours: bool,
    pids: Vec<u32>,
    mounts: Vec<Mount>,
}

impl Table {
    /// What they have of this file system.
    fn text(&self, device: &str) -> Option<String> {
        let is_it = |mount: &&Mount| mount.device == device && mount.kind.starts_with("fuse");
        let points: Vec<String> = self.mounts.iter().filter(is_it).map(at).collect();
        let (points, pids) = (points.join(" and "), process::all_named(&self.pids, SHOWN_MAX));
        match (points.is_empty(), self.is_ours) {
            (true, _) => None,
            (false, true) => Some(format!("it is also mounted at {points}")),
            (false, false) => {
                Some(format!("{pids} keeps it in another mount namespace, at {points}"))
            }
        }
    }
}

fn at(mount: &Mount) -> String {
    Shown::name(&mount.point).to_string()
}

/// The tables of all namespaces in which there is a process.
fn tables() -> Vec<Table> {
    let mut namespaces: BTreeMap<PathBuf, Vec<u32>> = BTreeMap::new();
    for pid in process::all() {
        namespace(&pid.to_string()).into_iter().for_each(|of| {
            namespaces.entry(of).or_default().push(pid);
        });
    }
    let own = namespace("self");
    let read = |pid: &u32| std::fs::read(format!("/proc/{pid}/mountinfo")).ok();
    let table = |(of, pids): (PathBuf, Vec<u32>)| {
        let mounts = parse(&pids.iter().find_map(read)?);
        Some(Table { is_ours: own.as_ref() == Some(&of), pids, mounts })
    };
    namespaces.into_iter().filter_map(table).collect()
}

fn namespace(process: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok()
}

/// Whether a process has a file of the file system, or stands in it, whatever its path is by now.
fn is_open(pid: u32, device: &str) -> bool {
    let of = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
    let open = std::fs::read_dir(of("fd")).into_iter().flatten().flatten();
    let open = open.map(|entry| entry.path()).chain([of("cwd"), of("root")]);
    let device_behind = |link: PathBuf| {
        let seen = unasked::behind(&link)?;
        Some(format!("{}:{}", seen.stx_dev_major, seen.stx_dev_minor))
    };
    open.into_iter().filter_map(device_behind).any(|it| it == device)
}

#[cfg(test)]
mod tests;
