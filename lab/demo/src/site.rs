//! Where everything of one of the demonstration's volumes lies, and its configuration.
//!
//! Promise: two volumes with different ways to their logs share nothing but the modelled disk.
//! Never: touches a file.

use std::path::{Path, PathBuf};

use holdfast_io::private;

use super::volume::Must;

/// How a front end reaches a volume's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It has the log itself.
    Direct,
    /// The server has it, and is asked through a queue.
    Queue,
}

/// Both ways to a volume's log.
pub(super) const WAYS: [Way; 2] = [Way::Direct, Way::Queue];

/// The word for a way, in the configuration and in ids.
pub(super) const fn word(way: Way) -> &'static str {
    match way {
        Way::Direct => "direct",
        Way::Queue => "queue",
    }
}

/// The region of the volume of a way, where a user has what is his alone. It holds what the log
/// disk has not written yet.
pub(super) fn region(way: Way) -> PathBuf {
    private::memory_folder().join(name(way))
}

fn name(way: Way) -> String {
    format!("demo-{}", word(way))
}

/// The places of the volume of one way.
#[derive(Clone, Debug)]
pub(super) struct Site {
    holdfast: PathBuf,
    work: PathBuf,
    disk: PathBuf,
    pub(super) way: Way,
    /// As a database without a guard of its own against torn pages needs it.
    is_uncached: bool,
}

impl Site {
    /// The volume of this way, in this work directory, home and log on this disk, served by this
    /// program.
    pub(super) fn of(holdfast: &Path, work: &Path, disk: &Path, way: Way) -> Site {
        let (holdfast, work) = (holdfast.to_owned(), work.to_owned());
        Site { holdfast, work, disk: disk.to_owned(), way, is_uncached: false }
    }

    /// The same, past the kernel's page cache: each write of a database reaches the volume whole.
    pub(super) fn uncached(self) -> Site {
        Site { is_uncached: true, ..self }
    }

    /// The program that serves it.
    pub(super) fn holdfast(&self) -> &Path {
        &self.holdfast
    }

    /// The name of the volume.
    pub(super) fn name(&self) -> String {
        name(self.way)
    }

    /// The directory that its processes work in.
    pub(super) fn work(&self) -> &Path {
        &self.work
    }

    /// Where it is mounted.
    pub(super) fn mount(&self) -> PathBuf {
        self.work.join(self.name())
    }

    /// Its home: an ordinary directory.
    pub(super) fn home(&self) -> PathBuf {
        self.disk.join(format!("{}.home", self.name()))
    }

    /// Its configuration file.
    pub(super) fn config(&self) -> PathBuf {
        self.file("toml")
    }

    /// What its keeper says.
    pub(super) fn keeper_log(&self) -> PathBuf {
        self.file("keeper.log")
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.work.join(format!("{}.{kind}", self.name()))
    }

    /// What its configuration file says.
    pub(super) fn configuration(&self, must: Must) -> String {
        let server = match self.way {
            Way::Direct => String::new(),
            Way::Queue => format!("[server]\nsocket = {:?}\n\n", self.file("server.sock")),
        };
        let cache = if self.is_uncached { "cache = \"direct\"\n" } else { "" };
        format!(
            "[keeper]\nsocket = {keeper:?}\n\n{server}[volume.{name}]\nhome = {home:?}\n\
             mount = {mount:?}\nlog = {log:?}\nway = \"{way}\"\n\
             memory = {{ medium = \"shm\", size = \"256MiB\", path = {region:?} }}\n\
             must_survive = [{must}]\n{cache}",
            keeper = self.file("keeper.sock"),
            name = self.name(),
            home = self.home(),
            mount = self.mount(),
            log = self.disk.join(format!("{}.log", self.name())),
            way = word(self.way),
            region = region(self.way),
            must = must.list(),
        )
    }
}

#[cfg(test)]
mod tests;
