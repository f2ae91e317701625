//! The keeper: holds what must outlive every front end, and supervises them.
//!
//! Promise: a volume is attached once, served as long as it is attached, and given back complete
//! when it is unmounted; one volume's trouble is not another's.
//! Never: opens a region to serve it, opens a log, or applies anything: front ends do.

mod configured;
mod ending;
mod powered;
mod pursued;
mod resumed;
mod upgraded;

pub use crate::supervisor::attached::kept_elsewhere;
pub use crate::supervisor::progress::Progress;

use crate::control::protocol::{Answer, Command};
use crate::control::told;
use crate::kept::kept_disks::KeptDisks;
use crate::kept::remains::Remains;
use crate::last_word::LastWord;
use crate::memory::Memories;
use crate::power::{Power, source_by_log};
use crate::report::{KeeperStatus, StatusReport, UPGRADE, VolumeStatus};
use crate::sectionless::{Sectionless, sectionless};
use crate::supervisor::attached::Attached;
use crate::supervisor::attempt::Attempt;
use crate::supervisor::disks::DiskFronts;
use crate::supervisor::front_end::FrontEndLife;
use crate::supervisor::front_end::known::KnownFront;
use crate::supervisor::life::known::State;
use crate::supervisor::progress::{LOOK_EVERY, PROGRESS_EVERY, Refuse};
use crate::supervisor::server::ServerLife;
use crate::{attach, supervisor::copies, supervisor::spawn, supervisor::upgrade};
use holdfast_attach::observe::observe;
use holdfast_client::protocol::VOLUME_PREFIX;
use holdfast_config::claims::PowerSource;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes;
use holdfast_config::{Config, VolumeConfig, Way};
use holdfast_machine::configuration;
use holdfast_machine::confinement::Confined;
use holdfast_machine::found::verdict;
use holdfast_machine::mounts::elsewhere::{FileSystem, PASSING, copies_text};
use holdfast_machine::service_manager::ServiceManager;
use holdfast_machine::threads::during;
use holdfast_memory::Medium;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// The kernel ends almost every other process before one with this score.
const OOM_SCORE: &str = "-900";

/// Why nothing can be done with a volume that this keeper does not have.
pub const NOT_ATTACHED: &str = "it is not mounted";

/// What to do with a volume that is mounted.
const USE_IT: &str = "use it there";

/// Asks the kernel to end other processes first when memory runs out: every program on a volume
/// waits for this one. Without the right to ask, the process is as likely to go as any.
pub fn stay_when_memory_is_short() {
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE) {
        tracing::debug!(%error, "the out-of-memory score stays as it is");
    }
}

/// What a keeper does that is asked to end before it has begun.
const WAITING: &str = "waiting for the server";

/// Where the configuration comes from.
#[derive(Debug)]
pub enum Source {
    /// From the root on. Read anew for every mount, so that volumes can be added to a running
    /// keeper.
    File(PathBuf),
    /// As given.
    Fixed(Box<Config>),
}

/// What the keeper has of a volume.
#[derive(Clone, Debug)]
enum Entry {
    Coming(Arc<Attempt>),
    Here(Arc<Attached>),
}

impl Entry {
    fn here(self) -> Option<Arc<Attached>> {
        match self {
            Entry::Coming(_) => None,
            Entry::Here(attached) => Some(attached),
        }
    }
}

/// Who attaches a volume that somebody wants.
enum Turn {
    /// Who asks.
    Ours(Arc<Attempt>),
    /// Somebody else does.
    Theirs(Arc<Attempt>),
    /// It is attached, and starts.
    Starts(Arc<Attached>),
}

/// What a volume by way of the queue is attached to.
const ITS_SERVER: &str = "its server";

/// Why a volume was not attached.
#[derive(Clone, Debug)]
enum Refusal {
    /// The server does not serve it. It is asked again whenever somebody wants to know.
    OfItsServer,
    /// Something of the volume itself.
    OfIts(Box<Problem>),
}

/// The keeper of a machine, or of one `holdfast run`.
#[derive(Debug)]
pub struct Keeper {
    source: Source,
    socket: PathBuf,
    /// Where this program came from, whatever is there by now.
    program: Outcome<PathBuf>,
    /// Keeps what a keeper that is killed has held.
    manager: Arc<ServiceManager>,
    /// What was kept so and is not taken up yet.
    remains: Remains,
    kept_disks: KeptDisks,
    started: Instant,
    /// One entry a volume.
    volumes: Mutex<BTreeMap<String, Entry>>,
    /// Why a volume was not attached when that was asked for last.
    refused: Mutex<BTreeMap<String, Refusal>>,
    /// The volumes that the keeper goes on trying to have.
    pursued: Mutex<BTreeSet<String>>,
    /// The server, or why there is none, if there is something to be served; set once.
    server: OnceLock<Option<Outcome<ServerLife>>>,
    /// The front ends of disks, set once.
    disks: OnceLock<DiskFronts>,
    /// What server and disks began with; set once.
    begun: OnceLock<Config>,
    /// What is known of the power, if the configuration names a source; set once.
    power: OnceLock<Arc<Power>>,
    /// Its term, if other hosts stand by; set once.
    term: OnceLock<u64>,
    /// What its processes serve.
    memories: Arc<Memories>,
    stopping: Mutex<bool>,
    stop_asked: Condvar,
    /// Whoever uses a mount is cut off.
    force: AtomicBool,
    /// What the keeper waits for before it ends: by volume, for people.
    waits_for: Mutex<BTreeMap<String, String>>,
    /// Nothing is attached any more; changes under the lock of `volumes`.
    closing: AtomicBool,
    last_word: LastWord,
}

impl Keeper {
    /// A keeper without volumes.
    pub fn new(source: Source, socket: PathBuf, manager: ServiceManager) -> Keeper {
        let manager = Arc::new(manager);
        Keeper {
            source,
            socket,
            program: upgrade::own_path(),
            remains: Remains::of(&manager),
            kept_disks: KeptDisks::of(&manager),
            manager,
            started: Instant::now(),
            volumes: Mutex::new(BTreeMap::new()),
            refused: Mutex::new(BTreeMap::new()),
            pursued: Mutex::default(),
            server: OnceLock::new(),
            disks: OnceLock::new(),
            begun: OnceLock::new(),
            power: OnceLock::new(),
            term: OnceLock::new(),
            memories: Arc::default(),
            stopping: Mutex::new(false),
            stop_asked: Condvar::new(),
            force: AtomicBool::new(false),
            waits_for: Mutex::new(BTreeMap::new()),
            closing: AtomicBool::new(false),
            last_word: LastWord::default(),
        }
    }

    /// Who started this process, if it wants to hear of it.
    pub fn manager(&self) -> &ServiceManager {
        &self.manager
    }

    /// Serves in this term of the host's.
    pub fn begin_term(&self, number: u64) {
        self.term.set(number).expect("a keeper has one term");
    }

    /// Does what a client asks.
    pub(crate) fn obey(&self, command: Command, say: Progress<'_>) -> Outcome<Answer> {
        match command {
            Command::Status => self.status().map(|status| Answer::Status(Box::new(status))),
            Command::Mount { name } => self.mount_asked(&name, say).map(Answer::Text),
            Command::Umount { name, force } => self.umount(&name, force, say).map(Answer::Text),
            Command::UpgradeServer { binary } => self.upgrade_server(binary, say).map(Answer::Text),
            Command::UpgradeVolume { name, binary } => {
                self.upgrade_volume(&name, binary, say).map(Answer::Text)
            }
            Command::UpgradeDisk { name, binary } => {
                self.upgrade_disk(&name, binary, say).map(Answer::Text)
            }
            Command::Drill => self.drill(say).map(Answer::Text),
            Command::Shutdown => {
                self.ask_to_stop();
                Ok(Answer::Text("the keeper gives every volume back and ends".into()))
            }
        }
    }

    /// Starts the server if the configuration has something for it. Returns when it serves.
    pub fn start_server(&self, config: &Config) -> Outcome<Option<String>> {
        let _is_first = self.begun.set(config.clone());
        self.refuse_if_ending(|| "starting the server".to_owned())?;
        let has_something = !config.services().is_empty() || config.serves_programs();
        let start =
            || has_something.then(|| ServerLife::start(config, self.term(), &self.memories));
        match self.server.get_or_init(start) {
            None => Ok(None),
            Some(started) => {
                let server = started.as_ref().map_err(Clone::clone)?;
                server.wait_until_served(&|| self.refuse_if_ending(|| WAITING.to_owned())).map(Some)
            }
        }
    }

    /// Starts the front ends of disks. Returns when those that have their disk themselves serve:
    /// true if there is one; the first reason if there should be and is not.
    pub fn start_disks(&self, config: &Config) -> Outcome<bool> {
        let start = || self.with_means(DiskFronts::start);
        let refuse = || self.refuse_if_ending(|| "starting the front ends of disks".to_owned());
        self.disks.get_or_init(start).wait_until_served(config, &refuse)
    }

    /// The front ends of disks, once they were started.
    fn disks(&self) -> &DiskFronts {
        static NONE: DiskFronts = DiskFronts::none();
        self.disks.get().unwrap_or(&NONE)
    }

    /// The server, if one was started.
    fn server(&self) -> Option<&ServerLife> {
        self.server.get()?.as_ref()?.as_ref().ok()
    }

    /// A volume that is not over.
    fn attached(&self, name: &str, doing: &str) -> Outcome<Arc<Attached>> {
        let found = self.lock().get(name).cloned().and_then(Entry::here);
        let found = found.filter(|attached| !attached.life.known().is_over());
        found.ok_or_else(|| {
            let what = format!("{doing} volume {name}");
            Problem::new(Exit::Failed, what, NOT_ATTACHED, "see `holdfast status`")
        })
    }

    /// Attaches and mounts a volume, or starts again what was given up. Whoever wants one that is
    /// being attached waits for how that ends. Returns when it serves.
    pub fn mount(&self, name: &str, say: Progress<'_>) -> Outcome<String> {
        if self.attached(name, "mounting").is_err() {
            self.refuse_other_name(&format!("mounting volume {name}"), name, &self.config()?)?;
        }
        let attached = match self.turn(name)? {
            Turn::Ours(attempt) => self.carry_out(name, &attempt)?,
            Turn::Theirs(attempt) => {
                attempt.wait(|attempt| say(&format!("{name}: {}", attempt.text())))?
            }
            Turn::Starts(attached) => attached,
        };
        self.wait_until_served(name, &attached, say)
    }

    /// [`Self::mount`] of what somebody may have asked for already.
    pub fn have_mounted(&self, name: &str, say: Progress<'_>) -> Outcome<String> {
        self.mount(name, say).or_else(|problem| match self.attached(name, "mounting") {
            Ok(attached) if attached.life.known().state == State::Serving => {
                Ok(self.served_text(name, &attached, attached.life.known().of.recovery))
            }
            _ => Err(problem),
        })
    }

    /// Attaches a volume, and tells everybody who waits for that.
    fn carry_out(&self, name: &str, attempt: &Attempt) -> Outcome<Arc<Attached>> {
        let attached = self.attach(name, attempt).map(Arc::new);
        let refusal = attached.as_ref().err().map(|problem| match attempt.waited_for(ITS_SERVER) {
            true => Refusal::OfItsServer,
            false => Refusal::OfIts(Box::new(problem.clone())),
        });
        self.note_refusal(name, refusal);
        match &attached {
            Ok(attached) => {
                drop(self.lock().insert(name.to_owned(), Entry::Here(attached.clone())));
                self.remains.taken(name);
            }
            Err(_) => drop(self.lock().remove(name)),
        }
        attempt.end(attached.clone());
        attached
    }

    /// Whose turn it is to attach the volume. What was given up is started again.
    fn turn(&self, name: &str) -> Outcome<Turn> {
        let what = || format!("mounting volume {name}");
        let mut volumes = self.lock();
        self.refuse_if_ending(what)?;
        match volumes.get(name) {
            Some(Entry::Coming(attempt)) => return Ok(Turn::Theirs(attempt.clone())),
            Some(Entry::Here(attached)) => match attached.life.known().state {
                State::GivenUp => {
                    attached.life.try_again();
                    return Ok(Turn::Starts(attached.clone()));
                }
                State::Starting => return Ok(Turn::Starts(attached.clone())),
                State::Detached | State::Failed => {}
                State::Detaching if !attached.is_connected() => {
                    let remedy =
                        format!("`holdfast umount {name}` waits for that: then mount it again");
                    return Err(Problem::new(
                        Exit::InUse,
                        what(),
                        "it is being given back",
                        remedy,
                    ));
                }
                _ => {
                    let found = || (format!("it is {}", attached.volume.found_at()), USE_IT.into());
                    let (why, remedy) = attached.out_of_place(name).unwrap_or_else(found);
                    return Err(Problem::new(Exit::InUse, what(), why, remedy));
                }
            },
            None => {}
        }
        let attempt = Attempt::begin();
        volumes.insert(name.to_owned(), Entry::Coming(attempt.clone()));
        Ok(Turn::Ours(attempt))
    }

    /// Remembers why a volume was not attached, or that it was.
    fn note_refusal(&self, name: &str, refusal: Option<Refusal>) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match refusal {
            Some(refusal) => drop(refused.insert(name.to_owned(), refusal)),
            None => drop(refused.remove(name)),
        }
    }

    /// Why a volume is not attached that somebody wanted to be, as far as that lasts.
    fn refusal(&self, name: &str, volume: &VolumeConfig) -> Option<Problem> {
        let refused = || self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let refusal = refused().get(name).cloned();
        match refusal? {
            Refusal::OfItsServer => self.server_of(name, volume).err(),
            Refusal::OfIts(problem) => Some(*problem),
        }
    }

    fn attach(&self, name: &str, attempt: &Attempt) -> Outcome<Attached> {
        let config = self.config()?;
        let kept_as = self.kept_as(name, &config)?;
        let is_kept = kept_as.is_some();
        let volume = kept_as.map_or_else(|| config.volume(name).cloned(), Ok)?;
        let power = config.power_of(&volume);
        if volume.way == Way::Queue {
            attempt.waits_for("the server to start");
            self.wait_for_server(&|| self.refuse_if_ending(|| format!("mounting volume {name}")))?;
        }
        // What an earlier front end left, and whoever looks for it has to find. The server keeps
        // what it began with.
        if volume.way == Way::Direct {
            self.server_of(name, &volume)?;
            self.memories.put_back(&volume.memory.medium(), &format!("volume {name}"))?;
        }
        attempt.waits_for("the disks of its home and its log");
        let verdict = verdict(name, &volume, source_by_log(&volume, power))?;
        let (taken, decided) = match is_kept {
            // It was noted when it was attached.
            true => (self.remains.held(name, &volume)?, None),
            false => attach::take(name, &config)?,
        };
        // What is wrong with the home says more than what a server then says of its log.
        attempt.waits_for(ITS_SERVER);
        let server = self.server_of(name, &volume)?;
        attempt.waits_for("its mount and its sockets");
        let binary = upgrade::open_binary(Path::new(spawn::OWN_BINARY))?;
        let held = attach::open_to_users(name, &volume, taken, &self.manager)?;
        let mounted = held.fuse.as_ref().zip(volume.mount.as_deref());
        let file_system = mounted.and_then(|(it, at)| FileSystem::behind(it, at, name));
        let mut orders = attach::orders(name, &volume, power, server);
        orders.term = self.term();
        let noted = decided.map_or(Ok(()), |it| attach::note(name, &volume, &held, &it));
        noted.inspect_err(|_| attach::unmount_unserved(&orders))?;
        let power = self.power.get().cloned().filter(|_| power != PowerSource::None);
        let means = (binary, &self.memories, power.clone());
        let life = FrontEndLife::start(orders, held, means, attach::unmount_unserved);
        let life = life.inspect_err(|_| self.remains.keep_again(name))?;
        Ok(Attached { volume, verdict, power, file_system, life })
    }

    fn term(&self) -> Option<u64> {
        self.term.get().copied()
    }

    /// Returns when it is decided whether there is a server, and which logs it has. Somebody may
    /// ask for a volume before.
    fn wait_for_server(&self, refuse: Refuse<'_>) -> Outcome<()> {
        while self.server.get().is_none() {
            refuse()?;
            std::thread::sleep(LOOK_EVERY);
        }
        self.server().map_or(Ok(()), |server| server.wait_until_begun(refuse))
    }

    /// The configuration that it was started with, if that is a file.
    pub(crate) fn configuration(&self) -> Option<String> {
        match &self.source {
            Source::File(path) => Some(told(path)),
            Source::Fixed(_) => None,
        }
    }

    /// Where it is asked.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    fn config(&self) -> Outcome<Config> {
        match &self.source {
            Source::File(path) => configuration::load(path),
            Source::Fixed(config) => Ok(Config::clone(config)),
        }
    }

    fn wait_until_served(
        &self,
        name: &str,
        attached: &Attached,
        say: Progress<'_>,
    ) -> Outcome<String> {
        let started = Instant::now();
        loop {
            let known = attached.life.wait_while(PROGRESS_EVERY, KnownFront::is_to_serve);
            if known.is_to_serve() {
                self.refuse_if_ending(|| format!("mounting volume {name}"))?;
                let text = format!("{name}: starting, {} s", started.elapsed().as_secs());
                say(&self.with_reasons(text, attached));
                continue;
            }
            return match (known.state, known.problem) {
                (State::Serving, _) => {
                    attached.wait_until_settled();
                    Ok(self.served_text(name, attached, known.of.recovery))
                }
                (_, Some(problem)) => Err(problem),
                (state, None) => {
                    let what = format!("mounting volume {name}");
                    let why = format!("it is {} meanwhile", state.word());
                    Err(Problem::new(Exit::Failed, what, why, "try again"))
                }
            };
        }
    }

    fn served_text(&self, name: &str, attached: &Attached, recovery: Option<String>) -> String {
        let verdict = attached.verdict();
        format!(
            "{name} is {}; {}\n{}",
            attached.volume.found_at(),
            recovery.unwrap_or_default(),
            holdfast_config::verdict_text(&verdict)
        )
    }

    /// Unmounts a volume and waits until its home is complete.
    pub(crate) fn umount(&self, name: &str, force: bool, say: Progress<'_>) -> Outcome<String> {
        self.pursue_no_more(name);
        let attached = match self.attached(name, "unmounting") {
            Ok(attached) => attached,
            Err(problem) => {
                if let Some(text) = self.forget(name) {
                    return Ok(text);
                }
                self.refuse_other_name(&problem.what, name, &self.config()?)?;
                return Err(problem);
            }
        };
        let was_mounted = attached.is_mounted();
        // Whoever asks a second time waits for the end of the first.
        if attached.life.known().state != State::Detaching {
            self.end_use(name, &attached, force, say)?;
            attached.life.unmounted();
            copies::watch_volume(name, &attached);
        }
        if force {
            attached.life.cut_off(!was_mounted && attached.is_connected());
        }
        self.wait_until_detached(name, &attached, say)
    }

    /// Takes a volume away from its users. The kernel may wait for its front end to do that.
    fn end_use(
        &self,
        name: &str,
        attached: &Attached,
        force: bool,
        say: Progress<'_>,
    ) -> Outcome<()> {
        let end = || attach::end_use(name, &attached.volume, attached.mount(), force);
        let mut spoken = Instant::now();
        during(end, || {
            if spoken.elapsed() >= PROGRESS_EVERY {
                spoken = Instant::now();
                say(&self.with_reasons(format!("{name}: being unmounted"), attached));
            }
            std::thread::sleep(LOOK_EVERY);
        })
    }

    /// What is waited for, with what stands still of it, and why.
    fn with_reasons(&self, text: String, attached: &Attached) -> String {
        let mut standing = attached.life.known().standstills;
        let server = self.server().filter(|_| attached.volume.way == Way::Queue);
        standing.extend(server.into_iter().flat_map(|server| server.known().standstills));
        standing.iter().fold(text, |text, standstill| format!("{text}; {standstill}"))
    }

    fn wait_until_detached(
        &self,
        name: &str,
        attached: &Attached,
        say: Progress<'_>,
    ) -> Outcome<String> {
        let begun = Instant::now();
        loop {
            let known = attached.life.wait_while(PROGRESS_EVERY, |it| !it.is_over());
            if begun.elapsed() >= PASSING && !known.is_over() {
                attached.refuse_kept(name, &known)?;
            }
            match (known.state, &known.problem) {
                (State::Detached, _) => {
                    let complete = known.complete_text(&attached.volume.home);
                    let copies = match known.of.copies_cut_off {
                        0 => String::new(),
                        processes => format!("; {}", copies_text(processes)),
                    };
                    return Ok(format!("{name} is given back: {complete}{copies}"));
                }
                (State::Failed, Some(problem)) => return Err(problem.clone()),
                _ => match self.lacks_its_server(name, &attached.volume) {
                    Some(why) => attached.life.let_go(why),
                    None => say(&self.with_reasons(left_text(name, &attached.volume), attached)),
                },
            }
        }
    }

    /// Why a volume cannot be given back: the server has its log, and was given up.
    fn lacks_its_server(&self, name: &str, volume: &VolumeConfig) -> Option<Problem> {
        let state = self.server()?.known().state;
        let is_lacking = volume.way == Way::Queue && state == State::GivenUp;
        is_lacking.then(|| {
            let (what, why) = (format!("giving volume {name} back"), "its server was given up");
            let remedy = format!(
                "memory and log are kept; mend what `holdfast status` says of the server, then \
                 `holdfast shutdown` and `holdfast umount {name}`"
            );
            Problem::new(Exit::Failed, what, why, remedy)
        })
    }

    /// What is known of every volume, configured or attached.
    pub fn status(&self) -> Outcome<StatusReport> {
        let config = self.config()?;
        self.forget_given_back(&config);
        // Before the volumes: what it says of their memory was so when they are looked at.
        let power = self.power.get().map(|power| power.status());
        let mut names: Vec<String> = config.volumes.keys().cloned().collect();
        let attached = self.lock().clone();
        let others = attached.keys().cloned().chain(self.remains.names());
        let others: BTreeSet<String> =
            others.filter(|name| !config.volumes.contains_key(name)).collect();
        names.extend(others);
        let server = self.server().map(|server| (server.socket(), server.known()));
        let behind = server.as_ref().map_or(&[][..], |(_, server)| &server.standstills);
        let astray = |name: &String| {
            server.as_ref()?.1.of.astray.get(&format!("{VOLUME_PREFIX}{name}")).cloned()
        };
        let log_trouble = |name: &String| {
            server.as_ref()?.1.of.log_troubles.get(&format!("{VOLUME_PREFIX}{name}")).cloned()
        };
        let coming = |name: &String| match attached.get(name)? {
            Entry::Coming(attempt) => Some(attempt.text()),
            Entry::Here(_) => None,
        };
        let status = |name: &String| match attached.get(name).cloned().and_then(Entry::here) {
            Some(attached) => {
                let status = attached.status(name);
                let status = match attached.volume.way {
                    Way::Queue => {
                        let status = status.behind(behind).log_trouble(log_trouble(name));
                        status.astray(astray(name), UPGRADE)
                    }
                    Way::Direct => status,
                };
                Some(status.changed(self.changed(&attached, &config, name)))
            }
            None => {
                let volume = &config.volumes.get(name).cloned().or(self.remains.was(name))?;
                let status = VolumeStatus::unattached(name, volume, config.power_of(volume));
                if let Some(problem) = self.other_than_here(name, volume) {
                    return Some(status.not_its_own(problem));
                }
                let status = status.refused(self.refusal(name, volume)).mounted_by_another(volume);
                Some(status.attaching(coming(name)))
            }
        };
        let volumes = names.iter().filter_map(status).collect();
        let keeper = KeeperStatus::of_this_process(&self.socket, self.started.elapsed());
        let keeper = KeeperStatus {
            is_ending: self.is_ending(),
            waits_for: self.waits_for(),
            configuration: self.configuration(),
            problem: self.changed_settings(&config),
            ..keeper
        };
        let fronts = self.disks().known();
        let mut report = StatusReport::new(Some(keeper), volumes).with(
            &config,
            self.begun.get(),
            server,
            &fronts,
        );
        let look = |(process, pid): (String, u32)| Confined::look(&process, pid);
        report.power = power;
        report.processes = report.pids().into_iter().filter_map(look).collect();
        Ok(report.beside(self.media(&config)))
    }

    /// Memory that no section of the configuration has, and nobody else.
    pub fn without_section(&self) -> Vec<Sectionless> {
        self.config().map_or_else(|_| Vec::new(), |config| sectionless(self.media(&config)))
    }

    /// The memory of all that is configured by now, that was when the keeper began, or that it has.
    fn media(&self, config: &Config) -> impl Iterator<Item = Medium> {
        let begun = self.begun.get().into_iter().flat_map(Config::media);
        let attached = self.lock().clone().into_values().filter_map(Entry::here);
        let attached = attached.map(|it| it.volume.medium());
        let kept = self.remains.names().into_iter().filter_map(|name| self.remains.was(&name));
        let kept = kept.map(|it| it.medium());
        let all: Vec<Medium> = config.media().chain(begun).chain(attached).chain(kept).collect();
        all.into_iter()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.volumes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much of a volume still waits, for people.
fn left_text(name: &str, volume: &VolumeConfig) -> String {
    match observe(&volume.medium()) {
        Ok(seen) => format!(
            "{name}: {} to drain, {} to apply to the home",
            sizes::rounded(seen.dirty_bytes()),
            sizes::rounded(seen.unapplied_bytes())
        ),
        Err(_) => format!("{name}: detaching"),
    }
}
