//! What status prints of disks in durable memory.
//!
//! Promise: as for volumes: the same facts as text and as JSON, which only gains fields.
//! Never: finds anything out but by looking into a region.

use super::nbd_tls::NbdTlsStatus;
use super::section::{Shown, shown};
use super::words::{UPGRADE, astray_text, mortal_text, of, verdict_with};
use crate::memory::Astray;
use crate::supervisor::front_end::known::KnownFront;
use crate::supervisor::server::known::KnownServer;
use holdfast_blocks::Vdisk;
use holdfast_client::protocol::DISK_PREFIX;
use holdfast_config::claims::{Failure, PowerSource, Verdict};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_config::verdict_lines;
use holdfast_config::{Config, DiskConfig, Way, way_default};
use holdfast_front::ublk;
use holdfast_machine::found::memory_of_disk;
use holdfast_machine::holders::is_mapped_by;
use holdfast_machine::standstill::Standstill;
use holdfast_memory::{AttachError, Observed, Region};
use holdfast_server::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Bytes of what a disk keeps or does not keep.
const BLOCK_BYTES: u64 = 4096;

/// A disk.
#[derive(Debug, Serialize, Deserialize)]
pub struct DiskStatus {
    /// Its name.
    pub name: String,
    /// `served`, `not served`, `not made`.
    pub state: String,
    /// How the configuration differs from what the keeper has, and what to do.
    #[serde(default)]
    pub problem: Option<String>,
    /// How its front end reaches it: `queue` or `direct`.
    #[serde(default = "way_default")]
    pub way: Way,
    /// What the region is made of.
    pub medium: String,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes of the blocks that are not empty.
    pub held_bytes: u64,
    /// The failures that acknowledgements must survive, as configured.
    pub must_survive: Vec<Failure>,
    /// What acknowledgements mean; missing when the claims refuse the configuration.
    pub verdict: Option<Verdict>,
    /// Clients that have a session with the server.
    pub clients: u64,
    /// Most clients at a time.
    pub clients_max: u32,
    /// Requests done.
    pub requests: u64,
    /// Requests and hellos that were refused.
    pub refused: u64,
    /// Times a client's queue was found damaged, and made anew.
    pub damage: u64,
    /// The directory in which it is a file, for programs that know nothing of the server.
    pub mount: Option<PathBuf>,
    /// Where it is a disk for programs that know nothing of the server.
    pub sockets: Vec<String>,
    /// Whether TLS has to be spoken where NBD is.
    #[serde(default)]
    pub nbd_tls: Option<NbdTlsStatus>,
    /// The block device that it is on this machine.
    #[serde(default)]
    pub ublk: Option<PathBuf>,
    /// The front end behind those, if there is one.
    pub front_end: Option<FrontEndStatus>,
    /// Why it is not served.
    pub last_error: Option<String>,
}

/// The front end of a disk.
#[derive(Debug, Serialize, Deserialize)]
pub struct FrontEndStatus {
    /// `starting`, `serving`, `restarting`, `given up`, `failed`.
    pub state: String,
    /// The process, while there is one.
    pub pid: Option<u32>,
    /// Front ends that died and were replaced.
    pub restarts: u64,
    /// Front ends that were replaced on request.
    pub upgrades: u64,
    /// Longest time without one that serves, in milliseconds, rounded up.
    pub longest_stall_ms: u64,
    /// That it stands still, why, and for how long.
    #[serde(default)]
    pub standstills: Vec<Standstill>,
    /// Connections that end when it is replaced: those that speak TLS.
    #[serde(default)]
    pub mortal_connections: u64,
}

/// What is wrong with a front end, if anything is.
fn of_front(front: &Outcome<KnownFront>) -> Option<&Problem> {
    front.as_ref().map_or_else(Some, |seen| seen.problem.as_ref())
}

/// Why nothing is known of memory that is there, for people.
fn unseen_text(error: &AttachError) -> Option<String> {
    let is_there = !matches!(error, AttachError::Missing);
    is_there.then(|| format!("its memory cannot be looked at: {error}"))
}

impl DiskStatus {
    /// Every configured disk and every one that the keeper has, with what the server said of it, if
    /// one runs.
    pub(crate) fn all(
        config: &Config,
        had: Option<&Config>,
        server: Option<&KnownServer>,
        fronts: &BTreeMap<String, Outcome<KnownFront>>,
    ) -> Vec<DiskStatus> {
        let ready = server.and_then(|server| server.of.ready.as_ref());
        let its_server = &had.unwrap_or(config).server;
        let one = |shown: Shown<'_, DiskConfig>| {
            let Shown { name, section: disk, came_later, problem } = shown;
            let service = format!("{DISK_PREFIX}{name}");
            let told = ready.and_then(|ready| of(&service, &ready.verdicts)).cloned();
            let seen = fronts.get(name).and_then(|front| front.as_ref().ok()?.of.verdict.clone());
            let whose = format!("disk {name}");
            let judged = || disk.verdict_on(&whose, memory_of_disk(disk), PowerSource::None).ok();
            let unserved = ready.and_then(|ready| of(&service, &ready.unserved));
            let of_front = fronts.get(name).and_then(of_front);
            let told_of = unserved.or(of_front).filter(|problem| problem.exit == Exit::InUse);
            let unserved = unserved.map(ToString::to_string);
            let front = fronts.get(name).and_then(|front| front.as_ref().ok());
            let astray = server.and_then(|server| server.of.astray.get(&service).cloned());
            let astray = astray.or_else(|| front?.of.astray.clone());
            let region = match came_later {
                true => Err(AttachError::Missing),
                false => Region::observe(&disk.medium()),
            };
            let is_missing = !came_later && matches!(region, Err(AttachError::Missing));
            let left = || Astray::without_keeper(&disk.medium()).filter(|_| is_missing);
            let astray = astray.or_else(left);
            let verdict = told.or(seen).or_else(judged);
            let verdict = verdict_with(astray.as_ref(), verdict);
            let again = match disk.way {
                Way::Direct => format!("`holdfast upgrade disk {name}`"),
                Way::Queue => UPGRADE.to_owned(),
            };
            let error = unserved.or(astray.as_ref().map(|why| astray_text(why, &again)));
            let unseen = region.as_ref().err().and_then(unseen_text);
            let is_known = (astray.is_some(), told_of.is_some());
            let status = DiskStatus::new(name, disk, (verdict, error), region).known(is_known);
            let clients_max = its_server.clients_of(status.clients_max);
            let status = status.with(fronts.get(name));
            let last_error = status.last_error.clone().or(unseen);
            let status = DiskStatus { problem, clients_max, last_error, ..status };
            if came_later { status.not_had() } else { status }
        };
        shown(had.map(|had| &had.disks), &config.disks).into_iter().map(one).collect()
    }

    fn new(
        name: &str,
        disk: &DiskConfig,
        (verdict, last_error): (Option<Verdict>, Option<String>),
        seen: Result<Observed, AttachError>,
    ) -> DiskStatus {
        let medium = disk.medium();
        let is_made = !matches!(seen, Err(AttachError::Missing));
        let seen = seen.ok();
        let is_served = seen.as_ref().is_some_and(|seen| is_mapped_by(&medium, seen.server_pid()));
        let is_shared = disk.way == Way::Queue;
        let word = |index: usize| seen.as_ref().map_or(0, |seen: &Observed| seen.word(index));
        let state = match &seen {
            None if !is_made => "not made",
            Some(_) if is_served => "served",
            _ => "not served",
        };
        DiskStatus {
            name: name.to_owned(),
            state: state.to_owned(),
            problem: None,
            way: disk.way,
            medium: disk.memory.medium.word().into(),
            size_bytes: disk.size.0,
            held_bytes: word(Vdisk::BLOCKS_HELD) * BLOCK_BYTES,
            must_survive: disk.must_survive.clone(),
            verdict,
            // What a dead server counted last is no client now.
            clients: if is_served && is_shared { word(words::CLIENTS) } else { 0 },
            clients_max: if is_shared { disk.clients_max() } else { 0 },
            requests: word(words::REQUESTS),
            refused: word(words::REFUSED),
            damage: word(words::DAMAGE),
            mount: disk.mount.clone(),
            sockets: disk.sockets().iter().map(|(_, address)| address.to_string()).collect(),
            nbd_tls: NbdTlsStatus::of(disk.nbd_tls.as_ref()),
            ublk: disk.ublk.map(ublk::block_path),
            front_end: None,
            last_error,
        }
    }

    /// One that is served without its name, or of which something else is known than that nobody
    /// has made it.
    fn known(mut self, (is_astray, is_told_of): (bool, bool)) -> DiskStatus {
        match self.state.as_str() {
            _ if is_astray => "served".clone_into(&mut self.state),
            "not made" if is_told_of => "not served".clone_into(&mut self.state),
            _ => {}
        }
        self
    }

    /// One that the keeper does not have, whatever is where it would be.
    fn not_had(self) -> DiskStatus {
        DiskStatus { state: "not served".to_owned(), ..self }
    }

    /// With what is known of its front end.
    fn with(mut self, front: Option<&Outcome<KnownFront>>) -> DiskStatus {
        let Some(front) = front else { return self };
        let problem = of_front(front);
        self.last_error = self.last_error.or(problem.map(ToString::to_string));
        self.front_end = front.as_ref().ok().map(|seen| FrontEndStatus {
            state: seen.state.word().into(),
            pid: seen.pid,
            restarts: seen.restarts,
            upgrades: seen.upgrades,
            longest_stall_ms: seen.longest_stall_ms(),
            standstills: seen.standstills.clone(),
            mortal_connections: seen.of.mortal_connections,
        });
        self
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let (name, state) = (&self.name, &self.state);
        let mut text = format!("\ndisk {name}: {state}");
        let is_shared = self.way == Way::Queue;
        let _ = match is_shared {
            true => write!(text, ", {} of {} clients", self.clients, self.clients_max),
            false => write!(text, ", way direct"),
        };
        let mut line = |key: &str, value: &str| {
            let _ = write!(text, "\n  {key:<12} {value}");
        };
        self.problem.iter().for_each(|why| line("problem", why));
        let (size, held) = (rounded(self.size_bytes), rounded(self.held_bytes));
        line("size", &format!("{size}, of which {held} are not empty"));
        match &self.verdict {
            Some(verdict) => verdict_lines(verdict).iter().for_each(|(k, v)| line(k, v)),
            None => line("acknowledges", "never: the claims refuse this configuration"),
        }
        if let Some(front) = &self.front_end {
            let (state, restarts, upgrades) = (&front.state, front.restarts, front.upgrades);
            let text = format!("{state}, {restarts} restarts, {upgrades} upgrades");
            let shown = |path: &PathBuf| path.display().to_string();
            let (mount, device) = (self.mount.iter().map(shown), self.ublk.iter().map(shown));
            let places: Vec<_> = mount.chain(self.sockets.iter().cloned()).chain(device).collect();
            line("front end", &format!("{text}, at {}", places.join(" and ")));
            front.standstills.iter().for_each(|it| line("stands still", &it.to_string()));
            let mortal = mortal_text(front.mortal_connections);
            mortal.iter().for_each(|text| line("at upgrade", text));
        }
        self.nbd_tls.iter().for_each(|tls| line("nbd_tls", tls.text()));
        let (requests, refused, damage) = (self.requests, self.refused, self.damage);
        if is_shared {
            line("requests", &requests.to_string());
            let refused = format!("{refused} requests; {damage} queues were damaged and rebuilt");
            line("refused", &refused);
        }
        line("last error", self.last_error.as_deref().unwrap_or("none"));
        text + "\n"
    }
}
