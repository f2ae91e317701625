//! What processes have of a home in mounts that are mounted nowhere.
//!
//! Promise: a mount that no process sees in its table is told from one that somebody sees, and from
//! what has a name here that leads to it beside the home.
//! Never: takes a file for one beside the home whose names nobody knows.

use holdfast_machine::mounts::views::{numbers_of, views};
use holdfast_machine::mounts::{all_mounts, leads_to};
use holdfast_machine::processes::{LONG, Process};
use holdfast_machine::raw::found_on;
use holdfast_machine::unasked;
use rustix::fs::Statx;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

/// The mounts that this process sees.
pub(super) fn ours() -> BTreeSet<u64> {
    all_mounts().iter().map(|mount| mount.number).collect()
}

/// Mounts that a process has something open in, and that neither it nor we see.
pub(super) struct Nowhere<'a> {
    home: &'a Path,
    opened: BorrowedFd<'a>,
    ours: &'a BTreeSet<u64>,
    task: &'a Process,
    /// Read when something is on a mount that is none of ours.
    its: OnceCell<BTreeSet<u64>>,
    found: BTreeSet<u64>,
}

impl<'a> Nowhere<'a> {
    pub(super) fn of(
        task: &'a Process,
        (home, opened): (&'a Path, BorrowedFd<'a>),
        ours: &'a BTreeSet<u64>,
    ) -> Nowhere<'a> {
        Nowhere { home, opened, ours, task, its: OnceCell::new(), found: BTreeSet::new() }
    }

    /// Looks at something on the file system of the home.
    pub(super) fn look(&mut self, link: &Path, seen: &Statx) {
        let number = seen.stx_mnt_id;
        let its = || self.its.get_or_init(|| numbers_of(self.task));
        let is_known = number == 0 || self.ours.contains(&number) || its().contains(&number);
        if !is_known && !self.is_beside(link, seen) && !self.is_found_beside(link, seen) {
            self.found.insert(number);
        }
    }

    /// Whether its name on the mount of the home leads elsewhere than into that.
    fn is_found_beside(&self, link: &Path, seen: &Statx) -> bool {
        found_on(self.opened, link).is_ok_and(|found| {
            let link = format!("/proc/self/fd/{}", found.as_raw_fd());
            self.is_beside(Path::new(&link), seen)
        })
    }

    /// Whether the name that the kernel has for it leads to the same thing here, and not into the
    /// home: what was handed on from another namespace is no way into a home.
    fn is_beside(&self, link: &Path, seen: &Statx) -> bool {
        let Ok(named) = fs::read_link(link) else { return false };
        let place = leads_to(&named);
        let of = |it: &Statx| (it.stx_ino, it.stx_dev_major, it.stx_dev_minor);
        let is_same = |there: Statx| of(&there) == of(seen);
        !place.starts_with(self.home) && unasked::behind(&place).is_some_and(is_same)
    }

    /// Their numbers.
    pub(super) fn found(self) -> BTreeSet<u64> {
        self.found
    }
}

/// Those of these mounts that nobody sees.
pub(super) fn unseen(mut numbers: BTreeSet<u64>) -> BTreeSet<u64> {
    if !numbers.is_empty() {
        let (views, _silent) = views(LONG, |_| false);
        let mounts = views.iter().flat_map(|view| &view.mounts);
        let seen: BTreeSet<u64> = mounts.map(|mount| mount.number).collect();
        numbers.retain(|number| !seen.contains(number));
    }
    numbers
}
