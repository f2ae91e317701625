//! What status prints of a volume.
//!
//! Promise: the same facts as text and as JSON, which only gains fields.
//! Never: finds anything out but by looking into its region, its log and its mount.

use super::block_cache::BlockCacheStatus;
use super::nbd_tls::NbdTlsStatus;
use super::words::{also, astray_text, mortal_text};
use crate::memory::Astray;
use crate::power::source_by_log;
use crate::pulse::why_stopped;
use crate::supervisor::front_end::known::KnownFront;
use crate::supervisor::life::known::State;
use crate::whose::refuse_kept_by_another;
use holdfast_attach::bond::Loss;
use holdfast_attach::made::may_be_made;
use holdfast_attach::observe::{Observation, observe, refuse_unseen};
use holdfast_attach::stuck::state_of;
use holdfast_client::protocol::VOLUME_PREFIX;
use holdfast_config::claims::{Class, Failure, PowerSource, Verdict};
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_config::verdict_lines;
use holdfast_config::{Address, Protocol, VolumeConfig};
use holdfast_front::ublk;
use holdfast_io::real::RealFiles;
use holdfast_log::Log;
use holdfast_machine::bounded;
use holdfast_machine::found::verdict;
use holdfast_machine::lock::front_end_with;
use holdfast_machine::mounts::our_mount_of;
use holdfast_machine::standstill::Standstill;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One volume.
#[derive(Debug, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// Its name.
    pub name: String,
    /// `starting`, `serving`, `restarting`, `given up`, `detaching`, `detached`, `failed`;
    /// `out of place`, served and not seen at its mount; `poisoned` when the log failed;
    /// `served without a keeper`; `left in memory`; `left in its
    /// log`, without a region; `not made`, without a log.
    pub state: String,
    /// Why, when something went wrong with the volume as a whole.
    pub problem: Option<String>,
    /// The ordinary directory, file or device.
    pub home: PathBuf,
    /// Where programs see it; nowhere, if sockets or a block device are the only way to it.
    pub mount: Option<PathBuf>,
    /// Where users of its disk connect, and what is spoken there.
    #[serde(default)]
    pub sockets: Vec<(Protocol, Address)>,
    /// Whether TLS has to be spoken where NBD is.
    #[serde(default)]
    pub nbd_tls: Option<NbdTlsStatus>,
    /// The block device that its disk is on this machine.
    #[serde(default)]
    pub ublk: Option<PathBuf>,
    /// The log directory.
    pub log: PathBuf,
    /// What the region is made of.
    pub medium: String,
    /// What powers the machine when the mains fail.
    pub power: PowerSource,
    /// The failures that acknowledgements must survive, as configured.
    pub must_survive: Vec<Failure>,
    /// What acknowledgements mean; missing when the claims refuse the configuration.
    pub verdict: Option<Verdict>,
    /// Bytes acknowledged or waiting that the log's device does not have yet.
    pub dirty_bytes: u64,
    /// Most bytes that may be dirty.
    pub bound_bytes: u64,
    /// Bytes of log that are not applied to the home yet.
    pub unapplied_bytes: u64,
    /// Those among all that the memory has room for.
    #[serde(default)]
    pub unapplied_ratio: f64,
    /// Speed of the log's device while draining; 0 before the first measurement.
    pub drain_rate_bytes_per_s: u64,
    /// Bytes drained in all.
    pub drained_bytes: u64,
    /// Syncs of the log's device.
    pub syncs: u64,
    /// Changes acknowledged.
    pub changes: u64,
    /// Blocks of the home that are kept in memory, if it has a block cache.
    #[serde(default)]
    pub block_cache: Option<BlockCacheStatus>,
    /// The process that serves it.
    pub front_end_pid: Option<u32>,
    /// Front ends that died and were replaced since it was attached.
    pub restarts: u64,
    /// Front ends that were replaced on request.
    #[serde(default)]
    pub upgrades: u64,
    /// Longest time without a front end, in milliseconds, rounded up.
    pub longest_stall_ms: u64,
    /// Longest wait of one change for room in the log, in milliseconds, rounded up.
    pub longest_wait_ms: u64,
    /// That memory had damaged something of the log, which was mended, and what to do about it.
    #[serde(default)]
    pub memory_damage: Option<String>,
    /// What recovery found when the front end started.
    pub recovery: Option<String>,
    /// The newest complaint.
    pub last_error: Option<String>,
    /// What stands still, why, and for how long.
    #[serde(default)]
    pub standstills: Vec<Standstill>,
    /// Connections that end when the front end is replaced: those that speak TLS.
    #[serde(default)]
    pub mortal_connections: u64,
    /// What the cleaner is stuck at: position in the log, reason, path, and since when.
    #[serde(default)]
    pub stuck: Option<String>,
    /// Records that the home did not take, and that somebody had put aside.
    #[serde(default)]
    pub put_aside: u64,
    /// What memory that was gone since the system started may have cost.
    #[serde(default)]
    pub loss: Option<String>,
}

impl VolumeStatus {
    /// What configuration and region tell of a volume.
    pub(crate) fn new(
        name: &str,
        volume: &VolumeConfig,
        verdict: Verdict,
        power: PowerSource,
        observed: Outcome<Observation>,
    ) -> VolumeStatus {
        let seen = observed.as_ref().ok();
        let unapplied_bytes = seen.map_or(0, Observation::unapplied_bytes);
        // Memory that is there has the size that it was made with.
        let ring_bytes = seen.map_or(volume.memory.size.0, |seen| seen.ring_bytes);
        VolumeStatus {
            name: name.to_owned(),
            state: if seen.is_some() { "left in memory" } else { State::Detached.word() }.into(),
            problem: None,
            home: volume.home.clone(),
            mount: volume.mount.clone(),
            sockets: volume.sockets(),
            nbd_tls: NbdTlsStatus::of(volume.nbd_tls.as_ref()),
            ublk: volume.ublk.map(ublk::block_path),
            log: volume.log.clone(),
            medium: volume.memory.medium.word().into(),
            power,
            must_survive: volume.must_survive.clone(),
            verdict: Some(verdict),
            dirty_bytes: seen.map_or(0, Observation::dirty_bytes),
            bound_bytes: ring_bytes,
            unapplied_bytes,
            unapplied_ratio: unapplied_bytes as f64 / ring_bytes as f64,
            drain_rate_bytes_per_s: seen.map_or(0, |seen| seen.drain_rate_bytes_per_s),
            drained_bytes: seen.map_or(0, |seen| seen.drained_bytes),
            syncs: seen.map_or(0, |seen| seen.syncs),
            changes: seen.map_or(0, |seen| seen.changes),
            block_cache: volume.block_cache.as_ref().map(BlockCacheStatus::of),
            front_end_pid: seen.and_then(|seen| seen.front_end_pid),
            restarts: 0,
            upgrades: 0,
            longest_stall_ms: 0,
            longest_wait_ms: seen.map_or(0, |seen| seen.longest_wait_ns.div_ceil(1_000_000)),
            memory_damage: seen.and_then(Observation::healed_text),
            recovery: None,
            last_error: seen.and_then(|seen| seen.error_text(&volume.log)),
            standstills: seen.and_then(stopped_front_end).into_iter().collect(),
            mortal_connections: 0,
            stuck: None,
            put_aside: 0,
            loss: None,
        }
        .with_observed_state(seen)
    }

    /// With what may be in memory alone, if that is less than what it has room for.
    pub(crate) fn bounded_by(mut self, bytes: Option<u64>) -> VolumeStatus {
        self.bound_bytes = bytes.map_or(self.bound_bytes, |it| it.min(self.bound_bytes));
        self
    }

    /// A volume that no keeper has attached.
    pub fn unattached(name: &str, volume: &VolumeConfig, power: PowerSource) -> VolumeStatus {
        let observed = observe(&volume.medium());
        let damaged = observed.as_ref().err().filter(|problem| problem.exit.stays()).cloned();
        let unseen = || {
            let service = format!("{VOLUME_PREFIX}{name}");
            refuse_unseen("looking at", (&service, &volume.medium())).err()
        };
        let damaged = damaged.or_else(unseen);
        let is_gone = observed.is_err();
        let power = source_by_log(volume, power);
        let judged = verdict(name, volume, power);
        let refused = judged.as_ref().err().cloned();
        let lacking =
            Verdict { class: Class::Disk, survives: vec![], lost_in: vec![], missing: vec![] };
        let mut status =
            Self::new(name, volume, judged.clone().unwrap_or(lacking), power, observed);
        status.verdict = judged.ok();
        status = status.with_log(volume, is_gone);
        let made = bounded::read(&volume.log, may_be_made).unwrap_or(None);
        let is_made = made != Some(false) || status.state != State::Detached.word();
        status.problem = damaged.or(refused).map(|problem| problem.to_string());
        if status.problem.is_some() {
            status.state = State::Failed.word().into();
        } else if let Some(pid) = unnamed_front_end(volume, is_gone) {
            status.front_end_pid = Some(pid);
            status.state = WITHOUT_KEEPER.into();
            status.problem = Some(format!(
                "the name of its memory is gone: its front end (process {pid}) has all of it, and \
                 `holdfast umount {name}` brings everything home; if that process ends otherwise, \
                 what is in memory only is lost"
            ));
        } else if !is_made {
            status.state = NOT_MADE.into();
            status.problem = Some(format!("it has no log yet: `holdfast volume make {name}`"));
        }
        status
    }

    /// Adds what the log's directory tells, if its disk answers: if the region is gone, what is
    /// left there, too.
    pub(crate) fn with_log(mut self, volume: &VolumeConfig, region_is_gone: bool) -> VolumeStatus {
        let read = move |log: &Path| {
            let left = region_is_gone.then(|| left_in_log(log)).flatten();
            (state_of(log), Loss::of_this_run(log), left)
        };
        let (state, loss, left) = match bounded::read(&volume.log, read) {
            Ok(read) => read,
            Err(time) => {
                self.standstills.push(bounded::silent("its log's", &volume.log, time));
                return self;
            }
        };
        (self.stuck, self.put_aside) = state;
        self.loss = loss;
        if let Some(left) = left.filter(|left| *left > 0) {
            self.unapplied_bytes = left;
            self.unapplied_ratio = left as f64 / volume.memory.size.0 as f64;
            self.state = LEFT_IN_LOG.into();
        }
        self
    }

    /// Adds why it was not attached, unless there is more to say against it.
    pub(crate) fn refused(mut self, why: Option<Problem>) -> VolumeStatus {
        if let (Some(why), None) = (why, &self.problem) {
            self.problem = Some(why.to_string());
            if self.state == State::Detached.word() {
                self.state = State::Failed.word().into();
            }
        }
        self
    }

    /// Adds that it is mounted, although the keeper that is asked does not have it.
    pub(crate) fn mounted_by_another(mut self, volume: &VolumeConfig) -> VolumeStatus {
        let mount = our_mount_of(volume).filter(|mount| mount.source == self.name);
        if let (Some(mount), None) = (mount, &self.problem) {
            let kept = refuse_kept_by_another("", self.front_end_pid).err();
            let by = kept.map_or_else(|| "it is not this keeper's".into(), |problem| problem.why);
            self.problem = Some(format!("it is mounted at {}: {by}", mount.point.display()));
        }
        self
    }

    /// One that is being attached: for how long, and what it waits for.
    pub(crate) fn attaching(mut self, text: Option<String>) -> VolumeStatus {
        if text.is_some() {
            self.state = ATTACHING.into();
            self.problem = text;
        }
        self
    }

    fn with_observed_state(mut self, seen: Option<&Observation>) -> VolumeStatus {
        if seen.is_some_and(|seen| seen.front_end_pid.is_some()) {
            self.state = WITHOUT_KEEPER.into();
        }
        if seen.is_some_and(|seen| seen.poison.is_some()) {
            self.state = "poisoned".into();
        }
        self
    }

    /// Adds what is known of its front ends.
    pub(crate) fn with(mut self, known: KnownFront) -> VolumeStatus {
        if !(known.state == State::Serving && self.state == "poisoned") {
            self.state = known.state.word().into();
        }
        // Behind the end of this keeper's, it may be another keeper's.
        if !known.is_over() {
            self.front_end_pid = known.pid;
        }
        self.longest_stall_ms = known.longest_stall_ms();
        self.problem = also(self.memory_damage.clone(), known.problem.map(|it| it.to_string()));
        self.restarts = known.restarts;
        self.upgrades = known.upgrades;
        self.recovery = known.of.recovery;
        self.last_error = self.last_error.or(known.last_error);
        self.standstills = known.standstills;
        self.mortal_connections = known.of.mortal_connections;
        let again = format!("`holdfast mount {}`", self.name);
        let moved = known.of.home_elsewhere.filter(|_| known.state == State::Serving);
        let moved = moved.map(|there| {
            let home = self.home.display();
            format!("its home is not at {home} any more, but at {there}; move it back")
        });
        self.problem = also(moved, self.problem);
        self.problem = also(known.of.home_entered, self.problem);
        self.log_trouble(known.of.log_trouble).astray(known.of.astray, &again)
    }

    /// One whose log's files are not where they were.
    pub(crate) fn log_trouble(mut self, trouble: Option<String>) -> VolumeStatus {
        self.problem = also(trouble, self.problem);
        self
    }

    /// One whose memory has lost its name: no other process would find it. `again` gives it back
    /// once everything is at home.
    pub(crate) fn astray(mut self, astray: Option<Astray>, again: &str) -> VolumeStatus {
        let Some(astray) = astray else { return self };
        let name = &self.name;
        let again = format!("`holdfast umount {name}` brings everything home, then {again}");
        let remedy = astray_text(&astray, &again);
        self.problem = also(Some(remedy), self.problem);
        self.verdict = self.verdict.map(Verdict::without_memory);
        self
    }

    /// Whether it is served.
    pub fn is_serving(&self) -> bool {
        self.state == State::Serving.word()
    }

    /// A volume that is served, and that programs do not find at its mount.
    pub fn out_of_place(mut self, look: impl FnOnce() -> Option<(String, String)>) -> VolumeStatus {
        if let Some((why, remedy)) = self.is_serving().then(look).flatten() {
            self.state = OUT_OF_PLACE.into();
            self.problem = also(Some(format!("{why}; {remedy}")), self.problem);
        }
        self
    }

    /// A volume that the configuration does not have like this any more.
    pub(crate) fn changed(mut self, how: Option<String>) -> VolumeStatus {
        self.problem = also(self.problem, how);
        self
    }

    /// A volume that is not attached, while somebody has what it is made of: the numbers and the
    /// process are of that.
    pub(crate) fn not_its_own(mut self, why: String) -> VolumeStatus {
        self.state = State::Detached.word().into();
        self.problem = Some(why);
        self.front_end_pid = None;
        (self.last_error, self.memory_damage) = (None, None);
        self.standstills.clear();
        (self.dirty_bytes, self.unapplied_bytes, self.unapplied_ratio) = (0, 0, 0.0);
        (self.drain_rate_bytes_per_s, self.drained_bytes) = (0, 0);
        (self.syncs, self.changes, self.longest_wait_ms) = (0, 0, 0);
        self
    }

    /// A volume whose log the server has stands still when that does.
    pub(crate) fn behind(mut self, server: &[Standstill]) -> VolumeStatus {
        self.standstills.extend(server.iter().cloned());
        self
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\n{}: {}", self.name, self.state);
        if let Some(pid) = self.front_end_pid {
            let _ = write!(text, ", front end {pid}");
        }
        if self.restarts > 0 {
            let _ = write!(text, ", {} restarts", self.restarts);
        }
        if self.upgrades > 0 {
            let _ = write!(text, ", {} upgrades", self.upgrades);
        }
        if self.restarts + self.upgrades > 0 {
            let _ = write!(text, ", longest stall {} ms", self.longest_stall_ms);
        }
        let mut line = |key: &str, value: &str| {
            let _ = write!(text, "\n  {key:<12} {value}");
        };
        self.problem.iter().for_each(|why| line("problem", why));
        line("home", &self.home.display().to_string());
        self.mount.iter().for_each(|mount| line("mount", &mount.display().to_string()));
        self.sockets.iter().for_each(|(protocol, at)| line(protocol.word(), &at.to_string()));
        self.nbd_tls.iter().for_each(|tls| line("nbd_tls", tls.text()));
        self.ublk.iter().for_each(|device| line("ublk", &device.display().to_string()));
        match &self.verdict {
            Some(verdict) => verdict_lines(verdict).iter().for_each(|(k, v)| line(k, v)),
            None => line("acknowledges", "never: the claims refuse this configuration"),
        }
        line("dirty", &self.dirty_text());
        line("un-applied", &self.unapplied_text());
        self.block_cache.iter().for_each(|cache| line("block cache", &cache.text()));
        self.standstills.iter().for_each(|it| line("stands still", &it.to_string()));
        mortal_text(self.mortal_connections).iter().for_each(|text| line("at upgrade", text));
        line("last error", self.last_error.as_deref().unwrap_or("none"));
        self.loss.iter().for_each(|loss| line("loss", loss));
        if let Some(stuck) = &self.stuck {
            line("stuck at", stuck);
            line("", &format!("mend the cause, or `holdfast volume skip {}`", self.name));
        }
        if self.put_aside > 0 {
            let name = &self.name;
            line(
                "put aside",
                &format!("{} records: `holdfast volume aside {name}`", self.put_aside),
            );
        }
        text + "\n"
    }

    fn unapplied_text(&self) -> String {
        let (bytes, percent) = (rounded(self.unapplied_bytes), 100.0 * self.unapplied_ratio);
        format!("{bytes}, {percent:.1} % of what the memory has room for")
    }

    fn dirty_text(&self) -> String {
        let rate = match self.drain_rate_bytes_per_s {
            0 => "drain rate not measured yet".to_owned(),
            rate => format!("drains at {}/s", rounded(rate)),
        };
        format!("{} of at most {}; {rate}", rounded(self.dirty_bytes), rounded(self.bound_bytes))
    }
}

/// A volume that has no log.
pub(crate) const NOT_MADE: &str = "not made";

/// A volume that is about to be served, if nothing is in the way.
pub const ATTACHING: &str = "attaching";

/// A volume that is served, and that programs do not find at its mount.
pub const OUT_OF_PLACE: &str = "out of place";

/// The state of a volume whose front end outlived its keeper.
const WITHOUT_KEEPER: &str = "served without a keeper";

/// A volume whose region is gone, and whose home lacks what its log has.
const LEFT_IN_LOG: &str = "left in its log";

/// What the log says that the home lacks, where there is no region to ask.
fn left_in_log(log: &Path) -> Option<u64> {
    let files = RealFiles::open(log).ok()?;
    Log::left(&files).ok()
}

/// The front end of a volume whose memory is not found by its name, if there is one.
fn unnamed_front_end(volume: &VolumeConfig, is_gone: bool) -> Option<u32> {
    let found = is_gone.then(|| bounded::read(&volume.home, front_end_with))?;
    found.ok().flatten()
}

/// A front end without a keeper that a signal has stopped.
fn stopped_front_end(seen: &Observation) -> Option<Standstill> {
    let pid = seen.front_end_pid?;
    let what = format!("its front end (process {pid}) cannot answer: {}", why_stopped(pid)?);
    Some(Standstill::new(what, Duration::ZERO))
}

#[cfg(test)]
mod tests;
