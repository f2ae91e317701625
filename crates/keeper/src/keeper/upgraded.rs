//! What somebody asks to be replaced: the server, and front ends of volumes and disks.
//!
//! Promise: a name that nobody has is refused with those that there are; what the keeper does not
//! have is refused with what makes it have that.
//! Never: replaces anything itself.

use super::Keeper;
use crate::report::{CAME_LATER, START_AGAIN};
use crate::supervisor::progress::Progress;
use holdfast_config::Way;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use std::path::PathBuf;

impl Keeper {
    /// This program, or else the one that now stands where this one came from.
    fn program_or(&self, binary: Option<PathBuf>) -> Outcome<PathBuf> {
        binary.map_or_else(|| self.program.clone(), Ok)
    }

    /// Replaces the server, by default by the program that now stands where this one came from.
    pub(super) fn upgrade_server(
        &self,
        binary: Option<PathBuf>,
        say: Progress<'_>,
    ) -> Outcome<String> {
        let what = "upgrading the server";
        let none = || {
            Problem::new(
                Exit::Usage,
                what,
                "nothing is served",
                "configure [log.NAME] or [disk.NAME]",
            )
        };
        let server = self.server().ok_or_else(none)?;
        server.upgrade(&self.program_or(binary)?, say)
    }

    /// Replaces the front end of a volume, by default by that same program.
    pub(super) fn upgrade_volume(
        &self,
        name: &str,
        binary: Option<PathBuf>,
        say: Progress<'_>,
    ) -> Outcome<String> {
        let attached = self.attached(name, "upgrading the front end of").or_else(|problem| {
            self.config()?.volume(name)?;
            Err(problem)
        })?;
        let binary = self.program_or(binary)?;
        let server = self.server().filter(|_| attached.volume.way == Way::Queue);
        server.map_or(Ok(()), |server| server.refuse_astray(&format!("volume {name}")))?;
        attached.life.upgrade(&format!("volume {name}"), &binary, say)?;
        let pid = attached.life.known().pid.unwrap_or_default();
        let binary = binary.display();
        Ok(format!("the front end of {name} is replaced: {binary} serves as process {pid}"))
    }

    /// Replaces the front end of a disk, by default by that same program.
    pub(super) fn upgrade_disk(
        &self,
        name: &str,
        binary: Option<PathBuf>,
        say: Progress<'_>,
    ) -> Outcome<String> {
        let binary = self.program_or(binary)?;
        if self.disks().has(name) {
            return self.with_means(|means| self.disks().upgrade((name, means), &binary, say));
        }
        let what = format!("upgrading the front end of disk {name}");
        let refused = |why: &str, remedy: &str| Problem::new(Exit::Usage, &*what, why, remedy);
        match self.begun.get().is_some_and(|begun| begun.disks.contains_key(name)) {
            true => {
                let why = "it has none: neither mount nor nbd nor vhost-user nor ublk is set";
                Err(refused(why, "see `holdfast status`"))
            }
            false => {
                self.config()?.disk(name)?;
                Err(refused(CAME_LATER, START_AGAIN))
            }
        }
    }
}
