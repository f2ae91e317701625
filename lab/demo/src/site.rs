//! Where everything of one of the demonstration's volumes lies, and its configuration.
//!
//! Promise: two volumes share nothing but the modelled disk.
//! Never: touches a file.

use std::path::{Path, PathBuf};

use holdfast_io::private;

use super::disks::Setting;
use super::volume::MustSurvive;

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

/// The word for the volume that relies on a power source, in ids.
pub(super) const POWERED: &str = "powered";

/// What volumes have outside a work directory: their regions and the power source, where a user has
/// what is his alone, and the log on this machine's own disk. No volume's log may lie where a
/// program holds a lock.
pub(super) fn strays(work: &Path) -> Vec<PathBuf> {
    let words = [word(Way::Direct), word(Way::Queue), FAST_LOG, POWERED];
    words.into_iter().map(region).chain([fast_log(work), ups()]).collect()
}

fn fast_log(work: &Path) -> PathBuf {
    work.with_extension(FAST_LOG)
}

/// What the power source says, in memory: it is written many times a second.
pub(super) fn ups() -> PathBuf {
    private::memory_folder().join("demo-ups")
}

fn region(word: &str) -> PathBuf {
    private::memory_folder().join(name(word))
}

fn name(word: &str) -> String {
    format!("demo-{word}")
}

/// What of the hold-up is kept for the notice, and for whatever else goes down.
const RESERVE_MS: u32 = 1000;

/// How often the source is asked: what it said counts for five times as long.
const ASKED_EVERY_MS: u32 = 20;

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
    /// Its memory acknowledges what has to survive the power, while the power source is armed.
    is_powered: bool,
}

impl Site {
    /// The volume of this way, in this work directory, home and log on this disk, served by this
    /// program.
    pub(super) fn of(holdfast: &Path, work: &Path, disk: &Path, way: Way) -> Site {
        let (holdfast, work) = (holdfast.to_owned(), work.to_owned());
        let (disk, is_uncached, has_fast_log) = (disk.to_owned(), false, false);
        Site { holdfast, work, disk, way, is_uncached, has_fast_log, is_powered: false }
    }

    /// The same with its log on this machine's own disk, which is taken for a fast one. That is to
    /// survive whatever a disk survives.
    pub(super) fn with_fast_log(self) -> Site {
        Site { has_fast_log: true, ..self }
    }

    /// The same with a power source: its memory is to survive what that gives a notice of.
    pub(super) fn powered(self) -> Site {
        Site { is_powered: true, ..self }
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
        match self.setting() {
            Setting::FastLog => FAST_LOG,
            Setting::Powered => POWERED,
            _ => word(self.way),
        }
    }

    /// Its region.
    pub(super) fn region(&self) -> PathBuf {
        region(self.word())
    }

    /// The setting of a database that uses it.
    pub(super) fn setting(&self) -> Setting {
        match (self.has_fast_log, self.is_powered) {
            (true, _) => Setting::FastLog,
            (false, true) => Setting::Powered,
            (false, false) => Setting::Holdfast(self.way),
        }
    }

    /// What its acknowledgements are to survive where nothing else is asked for.
    pub(super) fn must(&self) -> MustSurvive {
        match self.setting() {
            Setting::FastLog => MustSurvive::Power,
            Setting::Powered => MustSurvive::Noticed,
            _ => MustSurvive::Process,
        }
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
    pub(super) fn configuration(&self, must: MustSurvive) -> String {
        let server = match self.way {
            Way::Direct => String::new(),
            Way::Queue => format!("[server]\nsocket = {:?}\n\n", self.file("server.sock")),
        };
        let power = match must {
            MustSurvive::Noticed => self.power_section(),
            MustSurvive::Process | MustSurvive::Power => String::new(),
        };
        let cache = if self.is_uncached { "cache = \"direct\"\n" } else { "" };
        format!(
            "[keeper]\nsocket = {keeper:?}\n\n{server}[volume.{name}]\nhome = {home:?}\n\
             mount = {mount:?}\nlog = {log:?}\nway = \"{way}\"\n\
             memory = {{ medium = \"shm\", size = \"256MiB\", path = {region:?} }}\n\
             must_survive = [{must}]\n{cache}{power}",
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

    /// Where its keeper notes drills.
    pub(super) fn drills(&self) -> PathBuf {
        self.file("drills.jsonl")
    }

    fn power_section(&self) -> String {
        format!(
            "\n[power]\nfile = {:?}\nreserve_ms = {RESERVE_MS}\nsettle_ms = 0\n\
             asked_every_ms = {ASKED_EVERY_MS}\ndrills = {:?}\n",
            ups(),
            self.drills(),
        )
    }
}

#[cfg(test)]
mod tests;
