//! Kills under load.
//!
//! Promise: the moment of each kill is drawn from the seed, and does not depend on what else is
//! killed in between; after each kill the database is recovered and checked in full before the
//! next.
//! Never: forgives. A lost transaction, a failed one where none may fail, or a complaint of the
//! database's own checks is counted and reported.

use std::thread;
use std::time::{Duration, Instant};

use super::disks::Setting;
use super::error::DemoError;
use super::outcome::Outcome;
use super::progress::Progress;
use super::subject::Database;
use super::volume::{Part, Volume};

/// A kill comes at a random moment between these two, counted from the start of the load.
const KILL_AFTER_MS: std::ops::Range<u64> = 400..1_600;

/// A load that is to outlive its kill runs this long.
const LOAD_S: u32 = 3;

/// A load that is to be ended by a kill would run this long.
pub(super) const LOAD_UNTIL_KILLED_S: u32 = 60;

/// Number of the first round of a database's second series of kills.
pub(super) const SECOND_SERIES_ROUND: u32 = 500_000;

/// Number of the first of a canary's rounds, apart from those of the kills.
pub(super) const FIRST_CANARY_ROUND: u32 = 1_000_000;

/// How often a canary may be lucky.
const CANARY_TRIES: u32 = 5;

/// How long the keeper may take to replace what was killed.
const RESTART_PATIENCE: Duration = Duration::from_secs(20);

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    /// Every process of the database.
    Database,
    /// A process that serves the volume.
    Part(Part),
}

/// A series of kills.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series {
    /// Number of its first round. No two rounds of a database have the same number.
    pub(super) first_round: u32,
    /// How often to kill.
    pub(super) count: u32,
    /// What the moments are drawn from.
    pub(super) seed: u64,
}

/// What one kill did.
#[derive(Debug)]
pub(super) struct Kill {
    /// What was killed.
    pub(super) victim: Victim,
    /// Transactions acknowledged in the round.
    pub(super) acknowledged: u64,
    /// Of those, the ones that are gone.
    pub(super) lost: u64,
    /// Transactions that failed. Those under way when the database dies are not counted.
    pub(super) failed: u64,
    /// Database: time to recover. Others: longest time without an acknowledgement.
    pub(super) stall_ms: f64,
    /// What the checks complained of; empty if nothing.
    pub(super) complaint: String,
}

/// Kills the database and each process that serves the volume, in turn.
pub(super) fn run<D: Database>(
    database: &mut D,
    volume: &Volume,
    series: Series,
    progress: Progress,
) -> Result<Vec<Kill>, DemoError> {
    let parts = volume.parts().iter().map(|&part| Victim::Part(part));
    let mut victims: Vec<_> =
        [Victim::Database].into_iter().chain(parts).zip(streams(series.seed)).collect();
    let mut kills = Vec::new();
    for (number, round) in (series.first_round..).take(series.count as usize).enumerate() {
        let turn = number % victims.len();
        let (victim, moments) = &mut victims[turn];
        let mut kill = match *victim {
            Victim::Database => kill_database(database, volume.setting(), round, moments.next())?,
            Victim::Part(part) => kill_part(database, volume, part, round, moments.next())?,
        };
        kill.complaint = database.complaint()?;
        let (number, count, sentence) = (number + 1, series.count, kill.sentence(D::SUBJECT.name));
        progress.say(&format!("kill {number} of {count}: {sentence}"));
        kills.push(kill);
    }
    Ok(kills)
}

/// Kills the database under a setting that must lose acknowledged transactions: the proof that the
/// check can see a loss. Returns how many it lost; tries again if it was lucky.
pub(super) fn canary<D: Database>(database: &mut D, seed: u64) -> Result<u64, DemoError> {
    let mut moments = Moments::from(!seed);
    for round in FIRST_CANARY_ROUND..FIRST_CANARY_ROUND + CANARY_TRIES {
        database.enter(Setting::Async)?;
        let lost = kill_database(database, Setting::Async, round, moments.next())?.lost;
        database.leave()?;
        if lost > 0 {
            return Ok(lost);
        }
    }
    Err(blind(D::SUBJECT.canary))
}

/// The error of a canary that lost nothing.
pub(super) fn blind(canary: &str) -> DemoError {
    let cause = format!("{canary} lost nothing: the check sees no loss");
    DemoError::new("checking the check", cause)
}

fn kill_database<D: Database>(
    database: &mut D,
    setting: Setting,
    round: u32,
    wait: Duration,
) -> Result<Kill, DemoError> {
    let mut load = database.load(round, LOAD_UNTIL_KILLED_S)?;
    thread::sleep(wait);
    database.kill(&mut load)?;
    let outcome = database.finish(load, true)?;
    let recovery = database.recover(setting)?;
    let mut kill = judge(database, Victim::Database, round, &outcome)?;
    kill.failed = 0;
    kill.stall_ms = recovery.as_secs_f64() * 1e3;
    Ok(kill)
}

fn kill_part<D: Database>(
    database: &mut D,
    volume: &Volume,
    part: Part,
    round: u32,
    wait: Duration,
) -> Result<Kill, DemoError> {
    let load = database.load(round, LOAD_S)?;
    thread::sleep(wait);
    let killed = volume.kill(part)?;
    let outcome = database.finish(load, false)?;
    wait_for_another(volume, part, killed)?;
    judge(database, Victim::Part(part), round, &outcome)
}

/// Waits until a process other than the killed one has its place. Without this one that nobody
/// restarted would go unnoticed by a database that happened not to write.
fn wait_for_another(volume: &Volume, part: Part, killed: i32) -> Result<(), DemoError> {
    let give_up = Instant::now() + RESTART_PATIENCE;
    while volume.process(part)?.is_none_or(|pid| pid == killed) {
        if Instant::now() > give_up {
            let name = part.name();
            let cause = format!("{name} {killed} was killed and none took its place");
            return Err(DemoError::new("waiting for the keeper", cause));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn judge<D: Database>(
    database: &D,
    victim: Victim,
    round: u32,
    outcome: &Outcome,
) -> Result<Kill, DemoError> {
    Ok(Kill {
        victim,
        acknowledged: outcome.acknowledged.len() as u64,
        lost: database.present(round)?.missing(&outcome.acknowledged),
        failed: outcome.failed,
        stall_ms: outcome.longest_stall_ms(),
        complaint: String::new(),
    })
}

impl Kill {
    /// True if nothing went wrong that may not.
    pub(super) fn is_clean(&self) -> bool {
        self.lost == 0 && self.failed == 0 && self.complaint.is_empty()
    }

    fn sentence(&self, name: &str) -> String {
        let (what, wait) = match self.victim {
            Victim::Database => (name, "recovered in"),
            Victim::Part(part) => (part.name(), "longest stall"),
        };
        let Kill { acknowledged, lost, failed, stall_ms, complaint, .. } = self;
        let checks = if complaint.is_empty() { "checks passed" } else { complaint };
        format!(
            "{what}: {acknowledged} acknowledged, {lost} lost, {failed} failed, \
             {wait} {stall_ms:.0} ms, {checks}"
        )
    }
}

/// Moments for any number of victims, each its own, so that a victim's do not depend on how many
/// there are.
fn streams(seed: u64) -> impl Iterator<Item = Moments> {
    (0..).map(move |victim| Moments::from(seed.wrapping_add(victim)))
}

/// Random moments from a seed (SplitMix64).
pub(super) struct Moments {
    state: u64,
}

impl Moments {
    /// The moments of a seed.
    pub(super) fn from(seed: u64) -> Moments {
        Moments { state: seed }
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Duration {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let span = KILL_AFTER_MS.end - KILL_AFTER_MS.start;
        Duration::from_millis(KILL_AFTER_MS.start + (mixed ^ (mixed >> 31)) % span)
    }
}

#[cfg(test)]
mod tests;
