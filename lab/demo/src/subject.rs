//! What a demonstration needs to know of a database, as code and as words.
//!
//! Promise: everything that differs between the databases is behind [`Database`] or in a
//! [`Subject`]; measuring, killing and reporting are the same for all of them.
//! Never: runs anything.

use std::path::Path;
use std::time::Duration;

use holdfast_figures::Better;

use super::disks::{Disks, Setting};
use super::error::DemoError;
use super::measure::Sample;
use super::outcome::{Outcome, Present};
use super::processes::Owner;

/// What the loss of memory costs a database whose writes come back in order.
pub(super) const PREFIX_STAYS: &str = "the last transactions; a consistent prefix stays";

/// A database that can be measured and killed.
pub(super) trait Database: Sized {
    /// Its words, cases and goals.
    const SUBJECT: Subject;

    /// What it waits for before it acknowledges if it is made by `create_whole` and has no guard.
    const UNGUARDED: Setting;

    /// A load under way. Dropped unfinished, it is ended.
    type Load;

    /// Makes the database in the work directory, filled, and stopped.
    fn create(work: &Path, disks: &Disks) -> Result<Self, DemoError>;

    /// Makes the database with all its files in `data`, an empty directory of its owner, and with
    /// what guards it against torn pages switched off; stopped.
    fn create_whole(work: &Path, data: &Path) -> Result<Self, DemoError>;

    /// The user it runs as, and whom its files belong to.
    fn user() -> Result<Owner, DemoError>;

    /// Moves the stopped database's files to where they lie under a setting, and starts it so.
    /// Returns how long it took to answer.
    fn enter(&mut self, setting: Setting) -> Result<Duration, DemoError>;

    /// Stops it in order.
    fn leave(&mut self) -> Result<(), DemoError>;

    /// Runs one case to its end, undisturbed.
    fn run(&mut self, case: &Case, seconds: u32) -> Result<Outcome, DemoError>;

    /// Starts a load whose transactions can be told by `round`, client and number.
    fn load(&mut self, round: u32, seconds: u32) -> Result<Self::Load, DemoError>;

    /// Kills the database with SIGKILL, every process of it.
    fn kill(&mut self, load: &mut Self::Load) -> Result<(), DemoError>;

    /// Waits for the end of a load and reads what it noted. If the database was killed, ends it.
    fn finish(&mut self, load: Self::Load, killed: bool) -> Result<Outcome, DemoError>;

    /// Starts it again after a kill; returns how long it took to answer.
    fn recover(&mut self, setting: Setting) -> Result<Duration, DemoError>;

    /// The rows of a round that are there.
    fn present(&self, round: u32) -> Result<Present, DemoError>;

    /// What the checks of the whole database complain of; empty if nothing.
    fn complaint(&self) -> Result<String, DemoError>;

    /// Proves that a loss would be seen: kills it where something must be lost, and returns how
    /// many acknowledged transactions were. The database is stopped before and after.
    fn canary(&mut self, seed: u64) -> Result<u64, DemoError>;

    /// Starts it on the volume's home, without Holdfast; `leave` follows.
    fn enter_home(&mut self, home: &Path) -> Result<(), DemoError>;
}

/// A database in words.
pub(super) struct Subject {
    /// First part of its ids, and name of its report.
    pub(super) id: &'static str,
    /// Name for people.
    pub(super) name: &'static str,
    /// The load, and which files pay for the disk.
    pub(super) load: &'static str,
    /// Heading over the settings: what lies on the disk.
    pub(super) place: &'static str,
    /// The loads that are measured.
    pub(super) cases: &'static [Case],
    /// The settings that are measured, in the order of the table.
    pub(super) settings: &'static [Words],
    /// What is compared, and what is asked of it.
    pub(super) goals: &'static [Goal],
    /// What the kills of the canary were, as the beginning of `... lost N transactions`.
    pub(super) canary: &'static str,
    /// Last part of the canary's id.
    pub(super) canary_id: &'static str,
}

/// One load that is measured.
pub(super) struct Case {
    /// Name in ids.
    pub(super) id: &'static str,
    /// Name for people.
    pub(super) title: &'static str,
}

/// A setting in words.
pub(super) struct Words {
    /// Which one.
    pub(super) setting: Setting,
    /// Name in ids.
    pub(super) id: &'static str,
    /// What it is called.
    pub(super) title: &'static str,
    /// What is left out of the acknowledged transactions when the power fails.
    pub(super) risk: &'static str,
}

impl Words {
    /// Holdfast as it is by default.
    pub(super) const HOLDFAST: Words =
        Words::of(Setting::HOLDFAST, "holdfast", "Holdfast", PREFIX_STAYS);

    /// A setting, its name in ids, what it is called, and what it risks.
    pub(super) const fn of(
        setting: Setting,
        id: &'static str,
        title: &'static str,
        risk: &'static str,
    ) -> Words {
        Words { setting, id, title, risk }
    }
}

/// The ratio of one setting, mostly Holdfast, to another.
pub(super) struct Goal {
    /// Its id, after the subject's.
    pub(super) id: &'static str,
    /// What is compared.
    pub(super) ours: Setting,
    /// Which case.
    pub(super) case: &'static str,
    /// Which figure of a run.
    pub(super) measure: fn(&Sample) -> f64,
    /// With what it is compared.
    pub(super) peer: Setting,
    /// Which way is better.
    pub(super) better: Better,
    /// What is asked of it, if anything.
    pub(super) goal: Option<f64>,
}

impl Goal {
    /// A goal for the rate of a case with Holdfast.
    pub(super) const fn rate(
        id: &'static str,
        case: &'static str,
        peer: Setting,
        goal: f64,
    ) -> Goal {
        Goal { goal: Some(goal), ..Goal::beside(id, case, Setting::HOLDFAST, peer) }
    }

    /// The rates of a case under two settings, of which nothing is asked.
    pub(super) const fn beside(
        id: &'static str,
        case: &'static str,
        ours: Setting,
        peer: Setting,
    ) -> Goal {
        let (measure, better) = (rate as fn(&Sample) -> f64, Better::Higher);
        Goal { id, case, ours, measure, peer, better, goal: None }
    }
}

/// Transactions per second.
pub(super) fn rate(sample: &Sample) -> f64 {
    sample.per_second
}

impl Subject {
    /// The words for a setting.
    pub(super) fn words(&self, setting: Setting) -> &Words {
        let found = self.settings.iter().find(|words| words.setting == setting);
        found.expect("a subject has words for what it measures")
    }
}
