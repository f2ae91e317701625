//! Where everything of one of the demonstration's volumes lies, and its configuration.
//!
//! Promise: two volumes share nothing but the modelled disk.
//! Never: touches a file.

use std::path::{Path, PathBuf};

use holdfast_io::private;

use super::disks::Setting;
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

/// The word for the volume whose log is on a disk of its own, in ids.
pub(super) const FAST_LOG: &str = "fastlog";

/// What volumes have outside a work directory: their regions, where a user has what is his alone,
/// and the log on this machine's own disk. No volume's log may lie where a program holds a lock.
pub(super) fn strays(work: &Path) -> Vec<PathBuf> {
    let words = [word(Way::Direct), word(Way::Queue), FAST_LOG];
    words.into_iter().map(region).chain([fast_log(work)]).collect()
}

fn fast_log(work: &Path) -> PathBuf {
    work.with_extension(FAST_LOG)
}

fn region(word: &str) -> PathBuf {
    private::memory_folder().join(name(word))
}

fn name(word: &str) -> String {
    format!("demo-{word}")
}

/// The places of one volume.
#[derive(Clone, Debug)]
pub(super) struct Site {
    holdfast: PathBuf,
    work: PathBuf,
    disk: PathBuf,
    pub(super) way: Way,
    /// As a database without a guard of its own against torn pages needs it.
    is_uncached: bool,
    /// Its log is not on the modelled disk, but on this machine's own.
    has_fast_log: bool,
}

impl Site {
    /// The volume of this way, in this work directory, home and log on this disk, served by this
    /// program.
    pub(super) fn of(holdfast: &Path, work: &Path, disk: &Path, way: Way) -> Site {
        let (holdfast, work) = (holdfast.to_owned(), work.to_owned());
        let (disk, is_uncached, has_fast_log) = (disk.to_owned(), false, false);
        Site { holdfast, work, disk, way, is_uncached, has_fast_log }
    }

    /// The same with its log on this machine's own disk, which is taken for a fast one. That is to
    /// survive whatever a disk survives.
    pub(super) fn with_fast_log(self) -> Site {
        Site { has_fast_log: true, ..self }
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
        name(self.word())
    }

    fn word(&self) -> &'static str {
        if self.has_fast_log { FAST_LOG } else { word(self.way) }
    }

    /// Its region.
    pub(super) fn region(&self) -> PathBuf {
        region(self.word())
    }

    /// The setting of a database that uses it.
    pub(super) fn setting(&self) -> Setting {
        if self.has_fast_log { Setting::FastLog } else { Setting::Holdfast(self.way) }
    }

    /// What its acknowledgements are to survive where nothing else is asked for.
    pub(super) fn must(&self) -> Must {
        if self.has_fast_log { Must::SurvivePower } else { Must::SurviveProcess }
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

    fn log(&self) -> PathBuf {
        match self.has_fast_log {
            true => fast_log(&self.work),
            false => self.disk.join(format!("{}.log", self.name())),
        }
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
            log = self.log(),
            way = word(self.way),
            region = self.region(),
            must = must.list(),
        )
    }
}

#[cfg(test)]
mod tests;
