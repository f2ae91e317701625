//! Who keeps a file system that was unmounted here.
//!
//! Promise: every process that sees a mount of it in a mount namespace of its own, and every place
//! where it is mounted here too, is named; where there is none, the processes that have it open.
//! Never: asks whoever serves the file system, so that one who hangs cannot hang the answer.

mod open;

use super::served::{device_of, has_ended, is_connected, mount_of};
use super::table::{Mount, SHOWN_MAX, all_mounts, leads_to};
use super::unmount::{covered_by, covered_text};
use super::views::{View, views};
use crate::processes::{BRIEF, is_trusted_process};
use holdfast_io::{Shown, process};
use std::collections::HashMap;
use std::iter;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long somebody may keep it who only passes by: a program that copies the table of mounts when
/// it starts, and takes away from its copy what it does not need.
pub const PASSING: Duration = Duration::from_secs(3);

/// A file system that the keeper mounted.
#[derive(Debug)]
pub struct FileSystem {
    device: String,
    /// Of the mount that the keeper made.
    number: u64,
    /// Where that is, or was before somebody unmounted it.
    point: PathBuf,
    /// Until it has ended, no other file system gets the number of the device.
    connection: Weak<OwnedFd>,
}

impl FileSystem {
    /// What is mounted over this connection by this name of a volume or disk, or was at this point
    /// until somebody unmounted it.
    pub fn behind(connection: &Arc<OwnedFd>, point: &Path, source: &str) -> Option<FileSystem> {
        let mount = mount_of(connection, point, source);
        let (number, device, point) = match mount {
            Some(Mount { number, device, point, .. }) => (number, device, point),
            // No mount has this number.
            None => (0, device_of(connection)?, leads_to(point)),
        };
        Some(FileSystem { device, number, point, connection: Arc::downgrade(connection) })
    }

    /// The mount that the keeper made, wherever it is by now, if it is there.
    pub fn mount(&self) -> Option<Mount> {
        let is_it = |mount: &Mount| mount.number == self.number && mount.device == self.device;
        let mount = all_mounts().into_iter().find(is_it)?;
        // One that was cut off is still in the way.
        (self.is_connected() || mount.is_ours() && has_ended(&mount)).then_some(mount)
    }

    /// Why it is not seen where programs look for it, and how it is again, if it is served and not
    /// seen there.
    pub fn out_of_place(&self, name: &str, point: &Path) -> Option<(String, String)> {
        if !self.is_connected() {
            // Whoever serves it learns that.
            return None;
        }
        let shown = point.display();
        let again = format!("`holdfast umount {name}`, then `holdfast mount {name}`");
        let unmounted = format!("it is unmounted at {shown}, and goes on being served");
        match self.mount() {
            None => Some(match self.kept() {
                Some(KeptBy::InUse(who)) => (
                    format!("{unmounted}: {who}"),
                    format!(
                        "stop them, and then {again}; or cut them off: `holdfast umount {name} \
                         --force`, then `holdfast mount {name}`"
                    ),
                ),
                _ => (unmounted, again),
            }),
            Some(mount) if mount.point != leads_to(point) => {
                Some((format!("it is mounted at {}, not at {shown}", at(&mount)), again))
            }
            Some(mount) => covered_by(&mount).map(|over| {
                (covered_text(&over), format!("unmount that: `umount {}`", over.point.display()))
            }),
        }
    }

    /// Who keeps it; nothing if nobody is seen to.
    pub fn kept(&self) -> Option<KeptBy> {
        kept(&self.device, &self.point).filter(|_| self.is_connected())
    }

    /// Whether whoever serves it has its connection still.
    pub fn is_connected(&self) -> bool {
        self.connection.upgrade().is_some_and(|connection| is_connected(&connection))
    }
}

/// What goes on being served although it is unmounted here, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptBy {
    /// Somebody has something of it; who, for people.
    InUse(String),
    /// So many processes see a copy of the mount, and nobody has anything of it open.
    Copied(usize),
}

impl KeptBy {
    /// Who keeps it, for people, if somebody has more than a copy of the mount.
    pub fn in_use(self) -> Option<String> {
        match self {
            KeptBy::InUse(who) => Some(who),
            KeptBy::Copied(_) => None,
        }
    }
}

/// Of copies that nobody used, for people.
pub fn copies_text(processes: usize) -> String {
    match processes {
        1 => "1 process had a copy of the mount and nothing open: it sees an error there from now \
              on"
        .to_owned(),
        _ => format!(
            "{processes} processes had a copy of the mount and nothing open: they see an error \
             there from now on"
        ),
    }
}

/// Who keeps the file system that has this device now, and was mounted at this place; nothing if
/// nobody is seen to.
pub fn kept(device: &str, point: &Path) -> Option<KeptBy> {
    let tables: Vec<Table> = tables().into_iter().filter(|it| it.has(device)).collect();
    let copied: Vec<u32> = tables.iter().flat_map(|table| table.pids.clone()).collect();
    let users = open::users(device, &copied);
    let uses = |table: &&Table| {
        !table.has_copies_alone(device, point) || table.pids.iter().any(|it| users.contains(it))
    };
    let mut who: Vec<String> =
        tables.iter().filter(uses).filter_map(|table| table.text(device)).collect();
    if !users.is_empty() {
        who.push(format!("{} has it open", process::all_named(&users, SHOWN_MAX)));
    }
    match who.is_empty() {
        true => (!copied.is_empty()).then_some(KeptBy::Copied(copied.len())),
        false => Some(KeptBy::InUse(who.join("; "))),
    }
}

/// What the processes of one mount namespace see.
struct Table {
    is_ours: bool,
    pids: Vec<u32>,
    mounts: Vec<Mount>,
}

impl Table {
    fn mounts_of<'a>(&'a self, device: &'a str) -> impl Iterator<Item = &'a Mount> {
        let is_it = move |it: &&Mount| it.device == device && it.kind.starts_with("fuse");
        self.mounts.iter().filter(is_it)
    }

    fn has(&self, device: &str) -> bool {
        self.mounts_of(device).next().is_some()
    }

    /// Whether what they have of it is what every copy of the table of mounts has: all of it, at
    /// its place.
    fn has_copies_alone(&self, device: &str, point: &Path) -> bool {
        let is_copy = |it: &Mount| it.root == Path::new("/") && it.point == point;
        !self.is_ours && self.mounts_of(device).all(is_copy)
    }

    /// What they have of this file system.
    fn text(&self, device: &str) -> Option<String> {
        let points: Vec<String> = self.mounts_of(device).map(at).collect();
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

/// The tables of all namespaces in which there is a process. A mount is in one of them alone; who
/// has another root may see it at another place.
fn tables() -> Vec<Table> {
    tables_of(all_mounts(), views(BRIEF, is_trusted_process).0)
}

/// The same, of what we see and what others do. Anybody may have a hundred thousand mounts in each
/// namespace of his, so each is looked up once, and compared with none.
fn tables_of(ours: Vec<Mount>, views: Vec<View>) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut table_of: HashMap<u64, usize> = HashMap::new();
    let ours = View { pids: Vec::new(), mounts: ours };
    for View { pids, mounts } in iter::once(ours).chain(views) {
        let known = mounts.iter().find_map(|mount| table_of.get(&mount.number).copied());
        let index = known.unwrap_or(tables.len());
        if index == tables.len() {
            tables.push(Table { is_ours: index == 0, pids: Vec::new(), mounts: Vec::new() });
        }
        let is_new = |it: &Mount| table_of.insert(it.number, index).is_none();
        tables[index].mounts.extend(mounts.into_iter().filter(is_new));
        tables[index].pids.extend(pids);
    }
    tables
}
#[cfg(test)]
mod tests;
