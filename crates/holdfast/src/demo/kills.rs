//! Kills under load.
//!
//! Promise: the moment of each kill is drawn from the seed; after each kill the database is
//! recovered and checked in full before the next.
//! Never: forgives. A lost transaction, a failed one where none may fail, or a complaint of the
//! database's own checks is counted and reported.

use std::thread;
use std::time::{Duration, Instant};

use super::disks::Setting;
use super::error::DemoError;
use super::outcome::Outcome;
use super::progress::Progress;
use super::subject::Database;
use super::volume::Volume;

/// A kill comes at a random moment between these two, counted from the start of the load.
const KILL_AFTER_MS: std::ops::Range<u64> = 400..1_600;

/// A load that is to outlive its kill runs this long.
const LOAD_S: u32 = 3;

/// A load that is to be ended by a kill would run this long.
pub(super) const LOAD_UNTIL_KILLED_S: u32 = 60;

/// Number of the first of a canary's rounds, apart from those of the kills.
pub(super) const FIRST_CANARY_ROUND: u32 = 1_000_000;

/// How often a canary may be lucky.
const CANARY_TRIES: u32 = 5;

/// How long the keeper may take to have another front end.
const RESTART_PATIENCE: Duration = Duration::from_secs(20);

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    /// Every process of the database.
    Database,
    /// The process that serves the volume.
    FrontEnd,
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
    /// Front end: longest time without an acknowledgement. Database: time to recover.
    pub(super) stall_ms: f64,
    /// What the checks complained of; empty if nothing.
    pub(super) complaint: String,
}

/// Kills the database and the front end in turn, `count` times in all.
pub(super) fn run<D: Database>(
    database: &mut D,
    volume: &Volume,
    count: u32,
    seed: u64,
    progress: Progress,
) -> Result<Vec<Kill>, DemoError> {
    let mut moments = Moments::from(seed);
    let mut kills = Vec::new();
    for round in 0..count {
        let wait = moments.next();
        let mut kill = match round % 2 {
            0 => kill_database(database, Setting::Holdfast, round, wait)?,
            _ => kill_front_end(database, volume, round, wait)?,
        };
        kill.complaint = database.complaint()?;
        let sentence = kill.sentence(D::SUBJECT.name);
        progress.say(&format!("kill {} of {count}: {sentence}", round + 1));
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

fn kill_front_end<D: Database>(
    database: &mut D,
    volume: &Volume,
    round: u32,
    wait: Duration,
) -> Result<Kill, DemoError> {
    let load = database.load(round, LOAD_S)?;
    thread::sleep(wait);
    let killed = volume.kill_front_end()?;
    let outcome = database.finish(load, false)?;
    wait_for_another(volume, killed)?;
    judge(database, Victim::FrontEnd, round, &outcome)
}

/// Waits until a front end other than the killed one serves. Without this a front end that
/// nobody restarted would go unnoticed by a database that happened not to write.
fn wait_for_another(volume: &Volume, killed: i32) -> Result<(), DemoError> {
    let give_up = Instant::now() + RESTART_PATIENCE;
    while volume.front_end()?.is_none_or(|pid| pid == killed) {
        if Instant::now() > give_up {
            let cause = format!("front end {killed} was killed and none took its place");
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
            Victim::FrontEnd => ("front end", "longest stall"),
        };
        let Kill { acknowledged, lost, failed, stall_ms, complaint, .. } = self;
        let checks = if complaint.is_empty() { "checks passed" } else { complaint };
        format!(
            "{what}: {acknowledged} acknowledged, {lost} lost, {failed} failed, \
             {wait} {stall_ms:.0} ms, {checks}"
        )
    }
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
