//! The life of the server process, seen from the keeper.
//!
//! Promise: the listening socket and the logs' directories outlive every server, so clients can
//! always connect and the next server always finds its logs; a server that died is replaced; one
//! that is to be replaced and whose successor does not come up is started again.
//! Never: opens a region, a log or a disk; it removes a region that its log needs no more.

mod awaited;
pub(crate) mod known;
mod log_places;
mod state;
mod store_place;
mod table_places;

use crate::memory::{self, Memories};
use crate::orders;
use crate::orders::{DiskOrders, LogOrders, ServerOrders, ServerReady, ServerReport};
use crate::supervisor::heard::{Heard, start_heard};
use crate::supervisor::life::Life;
use crate::supervisor::life::known::State;
use crate::supervisor::life::process::Process;
use crate::supervisor::life::watched::{LOOK_EVERY, Watched};
use crate::supervisor::progress::{self, Progress, RETRY_EVERY, Refuse};
use crate::supervisor::restart::Death;
use crate::supervisor::spawn::{OWN_BINARY, start_server};
use crate::supervisor::upgrade::{END_PATIENCE, Request, open_binary};
use crate::taken;
use awaited::are_empty;
use holdfast_attach::bond::RegionNote;
use holdfast_attach::logs;
use holdfast_attach::observe::look;
use holdfast_client::protocol::{DISK_PREFIX, LOG_PREFIX, TABLE_PREFIX, VOLUME_PREFIX};
use holdfast_config::claims::PowerSource;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Address, Config, ServedLogConfig};
use holdfast_io::private::NamedListener;
use holdfast_io::real::RealFiles;
use holdfast_machine::found::{memory_of, verdict_of_log};
use holdfast_machine::holders::Holder;
use holdfast_machine::lock::holder_of_directory;
use holdfast_machine::signals::is_from_outside;
use holdfast_machine::standstill::{Look, Standstill};
use holdfast_machine::threads;
use holdfast_memory::{Medium, Region};
use holdfast_peers::refuse_descriptors;
use known::{KnownServer, OfServer};
use rustix::process::Signal;
use state::{Awaited, Event, Held, Places, Running, Supervisor, Untaken};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long it may take to bring everything to the disks when the keeper ends.
const DRAIN_PATIENCE: Duration = Duration::from_secs(120);

/// Everybody may connect to the server's socket.
const EVERYBODY: u32 = 0o666;

/// The server, seen from the keeper.
#[derive(Debug)]
pub(crate) struct ServerLife {
    socket: PathBuf,
    watched: Arc<Watched<OfServer>>,
    events: Sender<Event>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The directory of a log that may be served.
fn take_log(service: &str, log: &ServedLogConfig, power: PowerSource) -> Outcome<OwnedFd> {
    verdict_of_log(service, log, memory_of(&log.memory), power)?;
    logs::take_log(service, &log.log, &log.memory.medium())
}

impl Held {
    /// Takes the logs that were made, or let go of, since the last server began.
    fn take_logs(&mut self) {
        for untaken in std::mem::take(&mut self.unserved) {
            // Nothing is waited for that somebody is known to have.
            if untaken.why.exit == Exit::InUse && holder_of_directory(&untaken.log.log).is_some() {
                self.unserved.push(untaken);
                continue;
            }
            let Untaken { service, log, .. } = untaken;
            match take_log(&service, &log, self.orders.power) {
                Ok(directory) => {
                    let directory_fd = directory.as_raw_fd();
                    self.orders.logs.push(LogOrders { service, log, directory_fd });
                    self.directories.push(directory);
                }
                Err(why) => self.unserved.push(Untaken { service, log, why }),
            }
        }
    }

    /// Removes the regions of volumes that nobody needs, also of one whose home was refused: what
    /// it is in the way of may be another log in the place of this one. A served log goes on with
    /// its own.
    fn remove_needless_memory(&self, memories: &Memories) {
        for (of, directory) in self.orders.logs.iter().zip(&self.directories) {
            let (memory, medium) = (&of.log.memory, of.log.memory.medium());
            let Ok(log) = directory.try_clone().map(RealFiles::from_fd) else { continue };
            let is_volume = of.service.starts_with(VOLUME_PREFIX);
            if !is_volume || !RegionNote::is_drained(&log, memory) {
                continue;
            }
            // Another file there is somebody's, and tells nothing of what is held.
            let is_here = !memories.leads_elsewhere(&medium);
            let is_needless =
                is_here && RegionNote::has_needless(&log, memory, &of.log.log_config());
            if is_needless {
                let removed = Region::remove(&medium);
                let stays = |error| tracing::warn!(%error, "the memory stays there");
                removed.unwrap_or_else(stays);
            }
            memories.let_go(&medium, is_needless || !is_here);
        }
    }
}

impl ServerLife {
    /// Takes the logs' directories and the socket, and starts the first server. A disk has nothing
    /// to be taken: all of it is in its region, which is the server's.
    pub(crate) fn start(
        config: &Config,
        term: Option<u64>,
        memories: &Arc<Memories>,
    ) -> Outcome<ServerLife> {
        let socket = config.server.socket.clone();
        let (mut directories, mut logs, mut unserved) = (Vec::new(), Vec::new(), Vec::new());
        for (service, log) in config.services() {
            match take_log(&service, &log, PowerSource::None) {
                Ok(directory) => {
                    let directory_fd = directory.as_raw_fd();
                    logs.push(LogOrders { service, log, directory_fd });
                    directories.push(directory);
                }
                Err(why) => unserved.push(Untaken { service, log, why }),
            }
        }
        let disks = config.served_disks();
        let disks = disks.map(|(name, disk)| DiskOrders { name: name.clone(), disk: disk.clone() });
        let disks: Vec<_> = disks.collect();
        let tables: Vec<_> = config.tables.clone().into_iter().collect();
        let snapshots: Vec<_> = config.snapshots.clone().into_iter().collect();
        // What somebody else has is awaited, whatever else there is.
        let is_passing = unserved.iter().any(|it: &Untaken| it.why.exit == Exit::InUse);
        let orders = ServerOrders {
            logs,
            disks,
            tables,
            snapshots,
            clients_max: config.server.clients_max,
            power: PowerSource::None,
            term,
            pulse_fd: None,
        };
        if let (true, Some(untaken)) = (are_empty(&orders) && !is_passing, unserved.first()) {
            return Err(untaken.why.clone());
        }
        let listener = listen(&socket)?;
        let binary = open_binary(Path::new(OWN_BINARY))?;
        let homes = config.volumes.iter();
        let homes =
            homes.map(|(of, it)| (format!("{VOLUME_PREFIX}{of}"), it.home.clone())).collect();
        let held = Held { listener, directories, orders, homes, unserved };
        let (who, of) = ("the server", OfServer::default());
        let watched = Watched::new((who, who), of, memories.clone(), media_of(config))?;
        let watched = Arc::new(watched);
        let (sender, events) = channel();
        let supervisor = Supervisor {
            held,
            life: Life::new(who.to_owned(), binary, watched.clone()),
            watched: watched.clone(),
            events,
            sender: sender.clone(),
            running: None,
            starts: 0,
            due: Some(Instant::now()),
            is_stopping: false,
            stands_still: false,
            marks: BTreeMap::new(),
            astray: BTreeMap::new(),
            places: Places::default(),
            awaited: Awaited::default(),
            left_out: Vec::new(),
        };
        let thread = threads::thread("server", move || supervisor.run())?;
        let thread = Mutex::new(Some(thread));
        Ok(ServerLife { socket, watched, events: sender, thread })
    }

    /// What is known now.
    pub(crate) fn known(&self) -> KnownServer {
        let mut known = self.watched.known();
        known.of.astray = self.watched.astray();
        known
    }

    /// The server as a front end of this volume finds it.
    pub(crate) fn for_volume(&self, name: &str) -> Outcome<orders::Server> {
        self.for_service(&format!("{VOLUME_PREFIX}{name}"))
    }

    /// The server as a front end of this disk finds it.
    pub(crate) fn for_disk(&self, name: &str) -> Outcome<orders::Server> {
        self.for_service(&format!("{DISK_PREFIX}{name}"))
    }

    fn for_service(&self, service: &str) -> Outcome<orders::Server> {
        let known = self.known();
        let ready = known.of.ready.unwrap_or_default();
        if let Some((_, problem)) = ready.unserved.iter().find(|(of, _)| of == service) {
            return Err(problem.clone());
        }
        let verdict = ready.verdicts.into_iter().find(|(of, _)| of == service);
        let lacking = || known.problem.map_or_else(not_served, not_served_yet);
        let (_, verdict) = verdict.ok_or_else(lacking)?;
        Ok(orders::Server { socket: self.socket.clone(), verdict })
    }

    /// Where clients connect.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns when the first server has said which logs it has, or when it is given up.
    pub(crate) fn wait_until_begun(&self, refuse: Refuse<'_>) -> Outcome<()> {
        let waits = |s: &KnownServer| s.of.ready.is_none() && s.is_to_serve();
        self.wait_while(waits, refuse).map(drop)
    }

    /// Returns when the first server serves, or when it is given up.
    pub(crate) fn wait_until_served(&self, refuse: Refuse<'_>) -> Outcome<String> {
        let known = self.wait_while(KnownServer::is_to_serve, refuse)?;
        match known.problem {
            Some(problem) => Err(problem),
            None => {
                let (socket, ready) = (self.socket.display(), known.of.ready.unwrap_or_default());
                Ok(format!("the server answers at {socket}; {}", ready.recovery))
            }
        }
    }

    /// Waits as long as that is so and nobody refuses to.
    fn wait_while(
        &self,
        waits: impl Fn(&KnownServer) -> bool,
        refuse: Refuse<'_>,
    ) -> Outcome<KnownServer> {
        loop {
            let seen = self.watched.wait_while(RETRY_EVERY, &waits);
            if !waits(&seen) {
                return Ok(seen);
            }
            refuse()?;
        }
    }

    /// Replaces the server; returns when the new one serves, or the old one is started again.
    pub(crate) fn upgrade(&self, binary: &Path, say: Progress<'_>) -> Outcome<String> {
        self.refuse_astray("the server")?;
        let send = |request| drop(self.events.send(Event::Upgrade(request)));
        Request::make("the server", binary, say, send)?;
        let pid = self.watched.lock().pid.unwrap_or_default();
        Ok(format!("the server is replaced: {} serves as process {pid}", binary.display()))
    }

    /// Refuses to end a process that needs memory, or a store, which no successor would find.
    pub(crate) fn refuse_astray(&self, whose: &str) -> Outcome<()> {
        let refuse = |(of, (why, remedy)): (&String, Holder)| {
            Err(memory::refuse_upgrade(whose, &(format!("{of}: {why}"), remedy)))
        };
        self.watched.hindered().map_or(Ok(()), refuse)?;
        let moved = self.watched.lock().of.store_troubles.clone();
        moved.iter().next().map_or(Ok(()), |(of, how)| refuse((of, how.clone())))
    }

    /// Has the server drain everything and end. Once it did, the memory of its volumes goes. One
    /// that has not begun to serve has nothing to drain, and is waited for only until `is_forced`.
    pub(crate) fn stop(&self, is_forced: &dyn Fn() -> bool) {
        let _ = self.events.send(Event::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut is_told = false;
        while thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            if is_forced() && !std::mem::replace(&mut is_told, true) {
                let _ = self.events.send(Event::GiveUp);
            }
            std::thread::sleep(progress::LOOK_EVERY);
        }
    }
}

impl Supervisor {
    fn run(mut self) {
        while !(self.is_stopping && self.running.is_none()) {
            match self.events.recv_timeout(self.patience()) {
                Ok(event) => self.heard(event),
                Err(RecvTimeoutError::Timeout) => self.look_at_the_clock(),
                // It cannot be: this end keeps a sender for its children's listeners.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        let _may_be_gone = self.held.listener.remove();
        if self.watched.lock().state == State::Detached {
            self.held.remove_needless_memory(&self.watched.memories);
        }
        // The descriptors close here, and with them the locks on the directories.
    }

    /// Until the next thing that has a time.
    fn patience(&self) -> Duration {
        let kill_at = self.running.as_ref().and_then(|running| running.process.kill_at());
        let ready_until = self.life.ready_until();
        let looks = self.running.is_some() || self.awaits();
        let look = looks.then(|| Instant::now() + LOOK_EVERY);
        let next = [self.due, kill_at, ready_until, look].into_iter().flatten().min();
        next.map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(Instant::now()))
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        self.look();
        self.look_at_awaited();
        self.look_at_socket();
        self.look_at_log_places();
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.begin();
        }
        let successor_is_late = self.life.is_late(now);
        let is_late = self.running.as_mut().is_some_and(|running| running.process.is_late(now));
        if successor_is_late || is_late {
            self.watched.signal(Signal::KILL);
        }
    }

    /// Looks whether the server lives, answers and drains, and says so once if it does not.
    fn look(&mut self) {
        let standing = self.watched.look();
        self.watched.tell_astray(&mut self.astray);
        let logs = self.look_at_logs();
        let standing = standing.iter().chain(logs.values().flatten());
        let text: Vec<String> = standing.map(ToString::to_string).collect();
        match (text.is_empty(), std::mem::replace(&mut self.stands_still, !text.is_empty())) {
            (false, false) => tracing::warn!("{}", text.join("; ")),
            (true, true) => tracing::info!("the server goes on"),
            _ => {}
        }
        let lived = self.running.as_ref().map(|running| running.process.lived());
        self.watched.change(|s| {
            s.of.logs = logs;
            if let (State::Serving, Some(lived)) = (s.state, lived) {
                s.problem = self.life.recurrence("logs, disks and tables", lived);
            }
        });
    }

    /// Has the next server take clients where the socket has lost its name, if nobody else has it.
    /// No server is ended whose memory the next one would not find.
    fn look_at_socket(&mut self) {
        if !self.may_renew() || self.watched.hindered().is_some() {
            return;
        }
        if self.mend_socket() {
            self.renew();
        }
    }

    /// Listens anew if the socket has lost its name; true if so. Why that cannot be is told.
    fn mend_socket(&mut self) -> bool {
        let mended = self.held.listener.mend();
        let unreached =
            mended.as_ref().err().map(|error| unreached(self.held.listener.path(), error));
        let is_news = self.watched.lock().of.unreached != unreached;
        unreached.iter().filter(|_| is_news).for_each(|why| tracing::error!("{why}"));
        self.watched.change(|s| s.of.unreached = unreached);
        let is_mended = mended.unwrap_or(false);
        if is_mended {
            refuse_descriptors(self.held.listener.listener());
            tracing::warn!("the server's socket was taken away, and is there again");
        }
        is_mended
    }

    /// Gives what a server that has ended served its names and its logs' files back, and holds what
    /// the next one is about to look for. What cannot have them is left out for as long.
    fn put_back(&mut self) {
        let Watched { memories, media, .. } = &*self.watched;
        let put = |(of, medium): (&String, &Medium)| {
            Some((of.clone(), memories.put_back(medium, &of.replacen('/', " ", 1)).err()?))
        };
        self.left_out = media.iter().filter_map(put).collect();
        let without_log = self.restore_logs();
        self.left_out.extend(without_log);
        self.left_out.iter().for_each(|(_, problem)| tracing::error!("{problem}"));
    }

    /// What does not move of the logs that programs use. A volume's is looked at with the volume.
    fn look_at_logs(&mut self) -> BTreeMap<String, Vec<Standstill>> {
        let now = Instant::now();
        let logs = self.held.orders.logs.iter().filter(|it| it.service.starts_with(LOG_PREFIX));
        let one = |orders: &LogOrders| {
            let seen = look(&orders.log.memory.medium())?;
            let marks = self.marks.entry(orders.service.clone()).or_default();
            Some((orders.service.clone(), marks.look(of_device(seen), now)))
        };
        logs.filter_map(one).collect()
    }

    fn heard(&mut self, event: Event) {
        let current = self.running.as_ref().map(|running| running.number);
        match event {
            Event::Said(number, report) if current == Some(number) => self.said(report),
            Event::Ended(number, status) if current == Some(number) => self.ended(status),
            Event::Said(..) | Event::Ended(..) => {}
            Event::Upgrade(request) => self.begin_upgrade(request),
            Event::Stop => {
                self.is_stopping = true;
                self.due = None;
                self.end(Signal::INT, DRAIN_PATIENCE);
            }
            Event::GiveUp if self.running.as_ref().is_some_and(|it| !it.process.was_ready) => {
                self.watched.signal(Signal::KILL);
            }
            Event::GiveUp => {}
        }
    }

    fn begin(&mut self) {
        self.held.take_logs();
        self.mend_socket();
        self.put_back();
        let orders = self.orders_of_free();
        if let (true, Some(why)) = (are_empty(&orders), self.passing_reason()) {
            self.life.hands_back(&why);
            return self.give_up(why);
        }
        let Held { listener, directories, .. } = &self.held;
        let fd = listener.listener().as_fd();
        let (binary, pulse) = (self.life.binary(), &self.watched.pulse);
        let (number, sender) = (self.starts + 1, self.sender.clone());
        let hear = move |heard| {
            drop(sender.send(match heard {
                Heard::Said(report) => Event::Said(number, report),
                Heard::Ended(status) => Event::Ended(number, status),
            }));
        };
        let start = || start_server(binary, &orders, fd, directories, pulse);
        let pid = match start_heard(start, hear) {
            Ok(pid) => pid,
            Err(problem) => {
                let died = Death { lived: Duration::ZERO, was_ready: false, was_killed: false };
                return self.again(died, problem);
            }
        };
        self.starts = number;
        tracing::info!(pid, "server started");
        self.life.started(pid);
        self.running = Some(Running { number, process: Process::new(pid) });
    }

    fn said(&mut self, report: ServerReport) {
        let Some(Running { process, .. }) = &mut self.running else { return };
        let ready = match report {
            ServerReport::Ready(ready) => ready,
            ServerReport::Failed(problem) => {
                self.watched.change(|s| s.last_error = Some(problem.to_string()));
                process.fault = Some(problem);
                return;
            }
        };
        process.was_ready = true;
        if process.is_to_end() {
            return; // it was told to before it could say so
        }
        match self.watched.hold(process.pid) {
            true => self.ready(ready),
            false => self.watched.signal(Signal::KILL),
        }
    }

    fn ready(&mut self, mut ready: ServerReady) {
        for (service, problem) in &ready.unserved {
            tracing::error!(service, "{problem}");
        }
        for right in &ready.rights_kept {
            tracing::warn!(right, "the server keeps a right");
        }
        let untaken = self.held.unserved.iter().map(|it| (it.service.clone(), it.why.clone()));
        ready.unserved.extend(untaken.chain(std::mem::take(&mut self.left_out)));
        self.note_served(&ready);
        let recovery = ready.recovery.clone();
        let stall = self.life.serves(|s| s.of.ready = Some(ready));
        tracing::info!(recovery, ?stall, "server serves");
    }

    fn begin_upgrade(&mut self, request: Request) {
        if self.life.is_upgrading() || self.is_stopping {
            return; // whoever asked hears that the answer will not come
        }
        self.life.upgrade(request);
        self.watched.stall.begin();
        match self.running {
            Some(_) => self.end(Signal::TERM, END_PATIENCE),
            None => self.begin_successor(),
        }
    }

    fn begin_successor(&mut self) {
        self.due = None;
        self.watched.change(|s| s.state = State::Restarting);
        self.begin();
    }

    /// Signals the server; if it does not end in time it is killed.
    fn end(&mut self, signal: Signal, patience: Duration) {
        let Some(running) = &mut self.running else { return };
        running.process.is_to_end_within(patience);
        self.watched.signal(signal);
    }

    fn ended(&mut self, status: ExitStatus) {
        let Some(Running { process, .. }) = self.running.take() else { return };
        self.watched.change(|s| s.pid = None);
        if self.is_stopping {
            let state = if status.success() { State::Detached } else { State::Failed };
            return self.watched.change(|s| s.state = state);
        }
        if self.life.was_replaced() {
            return self.begin_successor();
        }
        // One that ends in order was told to, and not by the keeper.
        let was_killed = status.success() || status.signal().is_some_and(is_from_outside);
        let death = process.death(was_killed);
        let mut problem = process.fault.unwrap_or_else(|| {
            let why = format!("the server died ({status})");
            let remedy = "see the keeper's log; `holdfast upgrade server` starts it again";
            Problem::new(Exit::Failed, "serving logs, disks and tables", why, remedy)
        });
        // Of what one lacks that got as far as to run, whoever asked for the first is told.
        problem.passes &= self.watched.lock().of.ready.is_some();
        tracing::warn!(%status, why = problem.why, "server died");
        self.again(death, problem);
    }

    /// A server died, or could not even be started.
    fn again(&mut self, death: Death, problem: Problem) {
        let was_ever_ready = self.watched.lock().of.ready.is_some();
        if was_ever_ready {
            self.watched.stall.begin();
        }
        if self.life.hands_back(&problem) {
            return self.begin();
        }
        let problem = match death.was_ready {
            true => problem,
            false => {
                let reason = || self.log_reason(self.watched.reason(problem));
                self.passing_reason().unwrap_or_else(reason)
            }
        };
        // Whoever it could not wait for is looked at from now on, and told of meanwhile.
        let was_in_vain = problem.exit == Exit::InUse && death.waited_in_vain();
        let next = match was_in_vain {
            true => Err(problem),
            false => self.life.after(death, problem, was_ever_ready),
        };
        match next {
            Ok(due) => self.due = Some(due),
            Err(problem) => self.give_up(problem),
        }
    }

    /// Nothing more is tried until somebody asks, or nobody has any more what somebody else has.
    fn give_up(&mut self, problem: Problem) {
        tracing::error!(why = problem.why, "gave up on the server");
        self.watched.change(|s| {
            s.state = State::GivenUp;
            s.problem = Some(problem);
        });
    }
}

/// What of a log is its device's. How far its reader is, and the words that readers have, are those
/// of its clients; why its disk takes no more is told where the log is.
fn of_device(seen: Look) -> Look {
    Look { released: seen.durable, log_errno: None, home_errno: None, stalls: 0, ..seen }
}

/// Why programs do not find a server that is there.
fn unreached(socket: &Path, error: &std::io::Error) -> String {
    let (at, why) = (socket.display(), taken::why(&Address::Unix(socket.to_owned()), error));
    format!(
        "programs do not find it: {at} was taken away, and cannot be made again ({why}); move \
         away what is there, and it is made by itself"
    )
}

/// A volume that came to the queue after the server was started.
pub(crate) fn not_served() -> Problem {
    let why = "the server does not have its log";
    let remedy = "the server has what was configured when the keeper started: start that again";
    Problem::new(Exit::Usage, "attaching the volume by way of the queue", why, remedy)
}

/// Something that waits for a server which serves nothing yet, for whatever it is that the server
/// lacks.
fn not_served_yet(of_server: Problem) -> Problem {
    let Problem { what, why, .. } = &of_server;
    let why = format!("the server serves nothing yet: {what} failed: {why}");
    let remedy =
        "nothing is lost, and `holdfast status` says when the server serves: try again then";
    let what = "being served by way of the queue".to_owned();
    Problem { what, why, remedy: remedy.to_owned(), ..of_server }
}

/// The memory of every service.
fn media_of(config: &Config) -> BTreeMap<String, Medium> {
    let logs = config.services().into_iter().map(|(of, log)| (of, log.memory.medium()));
    let disks = config.served_disks().map(|(of, it)| (format!("{DISK_PREFIX}{of}"), it.medium()));
    let tables = config.tables.iter();
    let tables = tables.map(|(of, it)| (format!("{TABLE_PREFIX}{of}"), it.memory.medium()));
    logs.chain(disks).chain(tables).collect()
}

/// Binds the socket in place of one that an earlier keeper left. Everybody may connect; each log's
/// list of users says who is served.
fn listen(socket: &Path) -> Outcome<NamedListener> {
    let bound = NamedListener::bind(socket, EVERYBODY);
    bound.inspect(|bound| refuse_descriptors(bound.listener())).map_err(|error| {
        let what = format!("listening at {}", socket.display());
        taken::refused(what, &Address::Unix(socket.to_owned()), "server.socket", &error)
    })
}
