//! Kills under load.
//!
//! Promise: the moment of each kill is drawn from the seed; after each kill the database is
//! recovered and checked in full before the next.
//! Never: forgives. A lost transaction, a failed one where none may fail, an unbalanced book or a
//! complaint of amcheck is counted and reported.

use std::thread;
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::load::{Load, Outcome};
use super::settings::Setting;
use super::verify;
use super::volume::Volume;
use crate::demo::error::DemoError;
use crate::demo::progress::Progress;

/// Clients of the load that is killed.
const CLIENTS: u32 = 8;

/// A kill comes at a random moment between these two, counted from the start of the load.
const KILL_AFTER_MS: std::ops::Range<u64> = 400..1_600;

/// A load that is to outlive its kill runs this long.
const LOAD_S: u32 = 3;

/// Numbers of the canary's rounds, apart from those of the kills.
const CANARY_ROUNDS: std::ops::Range<u32> = 1_000_000..1_000_005;

/// How long the keeper may take to have another front end.
const RESTART_PATIENCE: Duration = Duration::from_secs(20);

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    /// Every process of the PostgreSQL server.
    Server,
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
    /// Transactions that failed. Those under way when the server dies are not counted.
    pub(super) failed: u64,
    /// Front end: longest time without an acknowledgement. Server: time to recover.
    pub(super) stall_ms: f64,
    /// What the checks complained of; empty if nothing.
    pub(super) complaint: String,
}

/// Kills the server and the front end in turn, `count` times in all.
pub(super) fn run(
    cluster: &mut Cluster,
    volume: &Volume,
    count: u32,
    seed: u64,
    progress: Progress,
) -> Result<Vec<Kill>, DemoError> {
    let mut moments = Moments { state: seed };
    let mut kills = Vec::new();
    for round in 0..count {
        let wait = moments.next();
        let mut kill = match round % 2 {
            0 => kill_server(cluster, round, wait)?,
            _ => kill_front_end(cluster, volume, round, wait)?,
        };
        kill.complaint = complaint(cluster)?;
        progress.say(&format!("kill {} of {count}: {}", round + 1, kill.sentence()));
        kills.push(kill);
    }
    Ok(kills)
}

/// Kills the server under `synchronous_commit=off`, which must lose acknowledged transactions:
/// the proof that the check can see a loss. Returns how many it lost; tries again if it was lucky.
pub(super) fn canary(cluster: &mut Cluster, seed: u64) -> Result<u64, DemoError> {
    let mut moments = Moments { state: !seed };
    for round in CANARY_ROUNDS {
        cluster.start(Setting::Async.synchronous_commit())?;
        let lost = kill_server(cluster, round, moments.next())?.lost;
        cluster.stop()?;
        if lost > 0 {
            return Ok(lost);
        }
    }
    let cause = "kills under synchronous_commit=off lost nothing: the check sees no loss";
    Err(DemoError::new("checking the check", cause))
}

fn kill_server(cluster: &mut Cluster, round: u32, wait: Duration) -> Result<Kill, DemoError> {
    let load = Load { clients: CLIENTS, seconds: 60, round: Some(round) }.start(cluster)?;
    thread::sleep(wait);
    cluster.kill()?;
    let outcome = load.finish()?;
    let recovery = cluster.start(Setting::Holdfast.synchronous_commit())?;
    let mut kill = judge(cluster, Victim::Server, round, &outcome)?;
    kill.failed = 0;
    kill.stall_ms = recovery.as_secs_f64() * 1e3;
    Ok(kill)
}

fn kill_front_end(
    cluster: &Cluster,
    volume: &Volume,
    round: u32,
    wait: Duration,
) -> Result<Kill, DemoError> {
    let load = Load { clients: CLIENTS, seconds: LOAD_S, round: Some(round) }.start(cluster)?;
    thread::sleep(wait);
    let killed = volume.kill_front_end()?;
    let outcome = load.finish()?;
    wait_for_another(volume, killed)?;
    judge(cluster, Victim::FrontEnd, round, &outcome)
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

fn judge(
    cluster: &Cluster,
    victim: Victim,
    round: u32,
    outcome: &Outcome,
) -> Result<Kill, DemoError> {
    Ok(Kill {
        victim,
        acknowledged: outcome.acknowledged.len() as u64,
        lost: verify::lost(cluster, round, &outcome.acknowledged)?,
        failed: outcome.failed,
        stall_ms: outcome.longest_stall_ms(),
        complaint: String::new(),
    })
}

/// What the checks of the whole database complain of.
fn complaint(cluster: &Cluster) -> Result<String, DemoError> {
    let books = if verify::balanced(cluster)? { "" } else { "the books do not balance " };
    Ok(format!("{books}{}", verify::amcheck(cluster)?))
}

impl Kill {
    /// True if nothing went wrong that may not.
    pub(super) fn is_clean(&self) -> bool {
        self.lost == 0 && self.failed == 0 && self.complaint.is_empty()
    }

    fn sentence(&self) -> String {
        let (what, wait) = match self.victim {
            Victim::Server => ("PostgreSQL", "recovered in"),
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
struct Moments {
    state: u64,
}

impl Moments {
    fn next(&mut self) -> Duration {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let span = KILL_AFTER_MS.end - KILL_AFTER_MS.start;
        Duration::from_millis(KILL_AFTER_MS.start + (mixed ^ (mixed >> 31)) % span)
    }
}
