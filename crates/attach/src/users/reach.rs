//! Who could have got at a home.
//!
//! Promise: a process of which any user or group, or a privilege, lets it pass by the directories
//! above a home and into it is told from one that none does.
//! Never: asks the process anything that it could keep back. Knows what was open to it once: a
//! directory that was closed since, or rights that it has given up.

use holdfast_io::private::has_access_list;
use holdfast_io::process;
use rustix::fs::{Stat, stat};
use std::path::Path;

/// To pass by a directory, as every class of users has it.
const PASS: u32 = 0o111;
/// To open what is at the end of the way.
const ANY: u32 = 0o777;

/// `CAP_DAC_OVERRIDE` and `CAP_DAC_READ_SEARCH`, as bits.
const PASS_EVERYWHERE: u64 = 1 << 1 | 1 << 2;

/// The way to a home: the home itself, and every directory above it.
#[derive(Debug)]
pub(super) struct Reach(Vec<Step>);

#[derive(Debug)]
struct Step {
    owner: u32,
    group: u32,
    mode: u32,
    has_list: bool,
}

/// Who a process is.
#[derive(Debug, Default)]
pub(super) struct Who {
    pub(super) users: Vec<u32>,
    pub(super) groups: Vec<u32>,
    pub(super) passes_everywhere: bool,
}

impl Reach {
    /// Of a home. Nothing is asked through its own path, over which something may be mounted.
    pub(super) fn of(path: &Path, home: &Stat, has_list: bool) -> Reach {
        let above = path.ancestors().skip(1);
        let above = above.filter_map(|at| Some((stat(at).ok()?, PASS, has_access_list(at))));
        let all = [(*home, ANY, has_list)].into_iter().chain(above);
        Reach(all.map(|(found, bits, has_list)| Step::of(&found, bits, has_list)).collect())
    }

    /// Whether this process could have opened something in it. One that is gone could not.
    pub(super) fn is_open_to_process(&self, pid: u32) -> bool {
        Who::is(pid).is_some_and(|who| self.is_open_to(&who))
    }

    pub(super) fn is_open_to(&self, who: &Who) -> bool {
        let is_root = who.passes_everywhere || who.users.contains(&0);
        is_root || self.0.iter().all(|step| step.lets(who))
    }
}

impl Step {
    fn of(found: &Stat, bits: u32, has_list: bool) -> Step {
        let (owner, group, mode) = (found.st_uid, found.st_gid, found.st_mode & bits);
        Step { owner, group, mode, has_list }
    }

    /// Whoever owns a directory can open it to himself. A list of access names users and groups of
    /// its own; the bits of the group are the most that any of them has.
    fn lets(&self, who: &Who) -> bool {
        let in_group = self.has_list || who.groups.contains(&self.group);
        who.users.contains(&self.owner)
            || self.mode & 0o007 != 0
            || self.mode & 0o070 != 0 && in_group
    }
}

impl Who {
    /// What the kernel tells of a process.
    fn is(pid: u32) -> Option<Who> {
        let told = process::status(pid)?;
        let numbers = |key: &str| {
            let words = process::field(&told, key).unwrap_or_default().split_ascii_whitespace();
            words.filter_map(|word| word.parse().ok()).collect::<Vec<u32>>()
        };
        let may = process::field(&told, "CapPrm");
        let may = may.and_then(|bits| u64::from_str_radix(bits, 16).ok()).unwrap_or(0);
        // In a namespace of one's own one may do everything to what is one's own. Nobody gets all
        // users but from who has them; the link to the namespace is one that a process keeps back.
        let passes_everywhere = may & PASS_EVERYWHERE != 0
            && process::user_map(pid) == process::user_map(std::process::id());
        let groups = [numbers("Gid"), numbers("Groups")].concat();
        Some(Who { users: numbers("Uid"), groups, passes_everywhere })
    }
}

#[cfg(test)]
mod tests;
