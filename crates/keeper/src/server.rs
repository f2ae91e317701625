//! The life of the server process, seen from the keeper.
//!
//! Promise: the listening socket and the logs' directories outlive every server, so clients can
//! always connect and the next server always finds its logs; a server that died is replaced; one
//! that is to be replaced and whose successor does not come up is started again.
//! Never: opens a region, a log or a disk; it removes a region that its log needs no more.

mod awaited;
mod log_places;
pub(crate) mod snapshot;
mod state;
mod store_place;
mod table_places;

use crate::heard::{Heard, start_heard};
use crate::memory::{self, Memories};
use crate::orders;
use crate::orders::{DiskOrders, LogOrders, ServerOrders, ServerReady, ServerReport};
use crate::progress::{self, Progress, RETRY_EVERY, Refuse};
use crate::restart::{Death, Deaths, Decision, until_it_passes};
use crate::signs::{new_pulse, silence, tell_astray, unanswered};
use crate::spawn::{OWN_BINARY, start_server};
use crate::supervisor::snapshot::State;
use crate::taken;
use crate::upgrade::{END_PATIENCE, Request, Upgrade, open_binary};
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
use rustix::process::{Pid, Signal, kill_process};
use snapshot::ServerSnapshot;
use state::{Awaited, Event, Held, Places, Running, Shared, Supervisor, Untaken};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often is looked whether it lives.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long it may take to bring everything to the disks when the keeper ends.
const DRAIN_PATIENCE: Duration = Duration::from_secs(120);

/// Everybody may connect to the server's socket.
const EVERYBODY: u32 = 0o666;

/// The server, seen from the keeper.
#[derive(Debug)]
pub(crate) struct ServerLife {
    socket: PathBuf,
    shared: Arc<Shared>,
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

    /// Removes the regions of volumes, also of one whose home was refused: what it is in the way of
    /// may be another log in the place of this one. A served log goes on with its own.
    fn remove_needless_memory(&self, memories: &Memories) {
        for (of, directory) in self.orders.logs.iter().zip(&self.directories) {
            let (memory, medium) = (&of.log.memory, of.log.memory.medium());
            let Ok(log) = directory.try_clone().map(RealFiles::from_fd) else { continue };
            let is_volume = of.service.starts_with(VOLUME_PREFIX);
            if !is_volume || !RegionNote::is_drained(&log, memory) {
                continue;
            }
            // Another file there is somebody's, and tells nothing of what is held.
            if !memories.leads_elsewhere(&medium) && RegionNote::has_needless(&log, memory) {
                let removed = Region::remove(&medium);
                let stays = |error| tracing::warn!(%error, "the memory stays there");
                removed.unwrap_or_else(stays);
            }
            memories.let_go(&medium, true);
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
            match take_log(&service, &log, config.keeper.power) {
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
            power: config.keeper.power,
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
        let shared = Shared::new(new_pulse("the server")?, memories.clone(), media_of(config));
        let shared = Arc::new(shared);
        let (sender, events) = channel();
        let supervisor = Supervisor {
            held,
            binary,
            shared: shared.clone(),
            events,
            sender: sender.clone(),
            deaths: Deaths::default(),
            running: None,
            starts: 0,
            due: Some(Instant::now()),
            upgrade: None,
            is_stopping: false,
            stands_still: false,
            marks: BTreeMap::new(),
            astray: BTreeMap::new(),
            places: Places::default(),
            awaited: Awaited::default(),
            is_renewing: false,
            left_out: Vec::new(),
        };
        let thread = threads::thread("server", move || supervisor.run())?;
        let thread = Mutex::new(Some(thread));
        Ok(ServerLife { socket, shared, events: sender, thread })
    }

    /// What is known now.
    pub(crate) fn snapshot(&self) -> ServerSnapshot {
        let mut snapshot = self.shared.lock().clone();
        snapshot.longest_stall = snapshot.longest_stall.max(self.shared.stall.so_far());
        let (pulse, pid) = (&self.shared.pulse, snapshot.pid);
        snapshot.astray = self.shared.astray();
        snapshot.standstills.extend(silence(pulse, pid, "the server"));
        snapshot.standstills.extend(unanswered(pulse, pid, "the server"));
        snapshot
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
        let snapshot = self.snapshot();
        let ready = snapshot.ready.unwrap_or_default();
        if let Some((_, problem)) = ready.unserved.iter().find(|(of, _)| of == service) {
            return Err(problem.clone());
        }
        let verdict = ready.verdicts.into_iter().find(|(of, _)| of == service);
        let lacking = || snapshot.problem.map_or_else(not_served, not_served_yet);
        let (_, verdict) = verdict.ok_or_else(lacking)?;
        Ok(orders::Server { socket: self.socket.clone(), verdict })
    }

    /// Where clients connect.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns when the first server has said which logs it has, or when it is given up.
    pub(crate) fn wait_until_begun(&self, refuse: Refuse<'_>) -> Outcome<()> {
        let waits = |s: &ServerSnapshot| {
            s.ready.is_none() && matches!(s.state, State::Starting | State::Restarting)
        };
        self.wait_while(waits, refuse).map(drop)
    }

    /// Returns when the first server serves, or when it is given up.
    pub(crate) fn wait_until_served(&self, refuse: Refuse<'_>) -> Outcome<String> {
        let waits = |s: &ServerSnapshot| matches!(s.state, State::Starting | State::Restarting);
        let snapshot = self.wait_while(waits, refuse)?;
        match snapshot.problem {
            Some(problem) => Err(problem),
            None => {
                let (socket, ready) = (self.socket.display(), snapshot.ready.unwrap_or_default());
                Ok(format!("the server answers at {socket}; {}", ready.recovery))
            }
        }
    }

    /// Waits as long as that is so and nobody refuses to.
    fn wait_while(
        &self,
        waits: impl Fn(&ServerSnapshot) -> bool,
        refuse: Refuse<'_>,
    ) -> Outcome<ServerSnapshot> {
        loop {
            let seen = self.shared.lock();
            let seen = self.shared.changed.wait_timeout_while(seen, RETRY_EVERY, |s| waits(s));
            let seen = seen.unwrap_or_else(PoisonError::into_inner).0.clone();
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
        let pid = self.snapshot().pid.unwrap_or_default();
        Ok(format!("the server is replaced: {} serves as process {pid}", binary.display()))
    }

    /// Refuses to end a process that needs memory, or a store, which no successor would find.
    pub(crate) fn refuse_astray(&self, whose: &str) -> Outcome<()> {
        let refuse = |(of, (why, remedy)): (&String, Holder)| {
            Err(memory::refuse_upgrade(whose, &(format!("{of}: {why}"), remedy)))
        };
        self.shared.hindered().map_or(Ok(()), refuse)?;
        let moved = self.shared.lock().store_troubles.clone();
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
        if self.shared.lock().state == State::Detached {
            self.held.remove_needless_memory(&self.shared.memories);
        }
        // The descriptors close here, and with them the locks on the directories.
    }

    /// Until the next thing that has a time.
    fn patience(&self) -> Duration {
        let kill_at = self.running.as_ref().and_then(|running| running.kill_at);
        let ready_until = self.upgrade.as_ref().and_then(Upgrade::ready_until);
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
        let kill_at = self.running.as_ref().and_then(|running| running.kill_at);
        let successor_is_late = self.upgrade.as_mut().is_some_and(|upgrade| upgrade.is_late(now));
        if successor_is_late || kill_at.is_some_and(|at| at <= now) {
            self.tell(Signal::KILL, None);
        }
    }

    /// Looks whether the server lives, answers and drains, and says so once if it does not.
    fn look(&mut self) {
        let (pulse, pid) = (&self.shared.pulse, self.shared.lock().pid);
        let silence = silence(pulse, pid, "the server");
        let unanswered = unanswered(pulse, pid, "the server");
        self.look_at_memories();
        let logs = self.look_at_logs();
        let standing = silence.iter().chain(&unanswered).chain(logs.values().flatten());
        let text: Vec<String> = standing.map(ToString::to_string).collect();
        match (text.is_empty(), std::mem::replace(&mut self.stands_still, !text.is_empty())) {
            (false, false) => tracing::warn!("{}", text.join("; ")),
            (true, true) => tracing::info!("the server goes on"),
            _ => {}
        }
        let stall = silence.map_or(Duration::ZERO, |it| Duration::from_millis(it.for_ms));
        let lived = self.running.as_ref().map(|running| running.started.elapsed());
        self.shared.change(|s| {
            s.longest_stall = s.longest_stall.max(stall);
            s.logs = logs;
            if let (State::Serving, Some(lived)) = (s.state, lived) {
                s.problem = self.deaths.recurrence("logs, disks and tables", lived);
            }
        });
    }

    /// Has the next server take clients where the socket has lost its name, if nobody else has it.
    /// No server is ended whose memory the next one would not find.
    fn look_at_socket(&mut self) {
        if !self.may_renew() || self.shared.hindered().is_some() {
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
        let is_news = self.shared.lock().unreached != unreached;
        unreached.iter().filter(|_| is_news).for_each(|why| tracing::error!("{why}"));
        self.shared.change(|s| s.unreached = unreached);
        let is_mended = mended.unwrap_or(false);
        if is_mended {
            refuse_descriptors(self.held.listener.listener());
            tracing::warn!("the server's socket was taken away, and is there again");
        }
        is_mended
    }

    /// Says once which memory has lost its name, and once that it has it again.
    fn look_at_memories(&mut self) {
        let astray = self.shared.astray();
        let was = std::mem::replace(&mut self.astray, astray.clone());
        for service in self.shared.media.keys() {
            let why = astray.get(service).map(|it| it.why.as_str());
            tell_astray(service, why, was.contains_key(service));
        }
    }

    /// Holds what this server has begun to serve; false if it found other memory than what is held.
    fn hold_memories(&self, pid: u32) -> bool {
        let Shared { memories, media, .. } = &*self.shared;
        media.values().filter(|medium| !memories.hold(medium, pid)).count() == 0
    }

    /// Gives what a server that has ended served its names and its logs' files back, and holds what
    /// the next one is about to look for. What cannot have them is left out for as long.
    fn put_back(&mut self) {
        let Shared { memories, media, .. } = &*self.shared;
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
                self.tell(Signal::INT, Some(DRAIN_PATIENCE));
            }
            Event::GiveUp if self.running.as_ref().is_some_and(|it| !it.was_ready) => {
                self.tell(Signal::KILL, None);
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
            let upgrade = self.upgrade.take();
            upgrade.into_iter().for_each(|it| it.failed("the server", &why.why, &mut self.binary));
            return self.give_up(why);
        }
        let Held { listener, directories, .. } = &self.held;
        let fd = listener.listener().as_fd();
        let pulse = &self.shared.pulse;
        let (number, sender) = (self.starts + 1, self.sender.clone());
        let hear = move |heard| {
            drop(sender.send(match heard {
                Heard::Said(report) => Event::Said(number, report),
                Heard::Ended(status) => Event::Ended(number, status),
            }));
        };
        let start = || start_server(self.binary.as_fd(), &orders, fd, directories, pulse);
        let pid = match start_heard(start, hear) {
            Ok(pid) => pid,
            Err(problem) => {
                let died = Death { lived: Duration::ZERO, was_ready: false, was_killed: false };
                return self.again(died, problem);
            }
        };
        self.starts = number;
        let started = Instant::now();
        tracing::info!(pid, "server started");
        self.shared.change(|s| s.pid = Some(pid));
        let (was_ready, fault, kill_at) = (false, None, None);
        self.running = Some(Running { number, pid, started, was_ready, fault, kill_at });
    }

    fn said(&mut self, report: ServerReport) {
        let Some(running) = &mut self.running else { return };
        let ready = match report {
            ServerReport::Ready(ready) => ready,
            ServerReport::Failed(problem) => {
                self.shared.change(|s| s.last_error = Some(problem.to_string()));
                running.fault = Some(problem);
                return;
            }
        };
        running.was_ready = true;
        let pid = running.pid;
        if running.kill_at.is_some() {
            return; // it was told to end before it could say so
        }
        match self.hold_memories(pid) {
            true => self.ready(ready),
            false => self.tell(Signal::KILL, None),
        }
    }

    fn ready(&mut self, mut ready: ServerReady) {
        let stall = self.shared.stall.end();
        tracing::info!(ready.recovery, ?stall, "server serves");
        for (service, problem) in &ready.unserved {
            tracing::error!(service, "{problem}");
        }
        for right in &ready.rights_kept {
            tracing::warn!(right, "the server keeps a right");
        }
        let untaken = self.held.unserved.iter().map(|it| (it.service.clone(), it.why.clone()));
        ready.unserved.extend(untaken.chain(std::mem::take(&mut self.left_out)));
        let upgrade = self.upgrade.take();
        self.note_served(&ready);
        self.shared.change(|s| {
            s.state = State::Serving;
            s.problem = None;
            s.ready = Some(ready);
            s.upgrades += u64::from(upgrade.is_some());
            s.longest_stall = s.longest_stall.max(stall);
        });
        upgrade.into_iter().for_each(Upgrade::succeeded);
    }

    fn begin_upgrade(&mut self, request: Request) {
        if self.upgrade.is_some() || self.is_stopping {
            return; // whoever asked hears that the answer will not come
        }
        self.upgrade = Some(Upgrade::begin(request, &mut self.binary));
        self.deaths = Deaths::default();
        self.shared.stall.begin();
        match self.running {
            Some(_) => self.tell(Signal::TERM, Some(END_PATIENCE)),
            None => self.begin_successor(),
        }
    }

    fn begin_successor(&mut self) {
        self.due = None;
        self.upgrade.iter_mut().for_each(Upgrade::started);
        self.shared.change(|s| s.state = State::Restarting);
        self.begin();
    }

    /// Signals the server; if it does not end in time it is killed.
    fn tell(&mut self, signal: Signal, patience: Option<Duration>) {
        let Some(running) = &mut self.running else { return };
        running.kill_at = patience.map(|patience| Instant::now() + patience);
        if let Some(pid) = Pid::from_raw(running.pid.cast_signed()) {
            let _ = kill_process(pid, signal);
        }
    }

    fn ended(&mut self, status: ExitStatus) {
        let Some(running) = self.running.take() else { return };
        self.shared.change(|s| s.pid = None);
        if self.is_stopping {
            let state = if status.success() { State::Detached } else { State::Failed };
            return self.shared.change(|s| s.state = state);
        }
        // An upgrade whose successor does not run yet waited for just this.
        let is_replaced = self.upgrade.as_ref().is_some_and(Upgrade::waits_for_the_old);
        if std::mem::take(&mut self.is_renewing) || is_replaced {
            return self.begin_successor();
        }
        let mut problem = running.fault.unwrap_or_else(|| {
            let why = format!("the server died ({status})");
            let remedy = "see the keeper's log; `holdfast upgrade server` starts it again";
            Problem::new(Exit::Failed, "serving logs, disks and tables", why, remedy)
        });
        // Of what one lacks that got as far as to run, whoever asked for the first is told.
        problem.passes &= self.shared.lock().ready.is_some();
        tracing::warn!(%status, why = problem.why, "server died");
        // One that ends in order was told to, and not by the keeper.
        let was_killed = status.success() || status.signal().is_some_and(is_from_outside);
        let (lived, was_ready) = (running.started.elapsed(), running.was_ready);
        self.again(Death { lived, was_ready, was_killed }, problem);
    }

    /// A server died, or could not even be started.
    fn again(&mut self, death: Death, problem: Problem) {
        let was_ever_ready = self.shared.lock().ready.is_some();
        if was_ever_ready {
            self.shared.stall.begin();
        }
        if let Some(upgrade) = self.upgrade.take() {
            return self.hand_back(upgrade, &problem);
        }
        let problem = match death.was_ready {
            true => problem,
            false => {
                let reason = || self.log_reason(self.shared.reason(problem));
                self.passing_reason().unwrap_or_else(reason)
            }
        };
        // Whoever it could not wait for is looked at from now on, and told of meanwhile.
        let was_in_vain = problem.exit == Exit::InUse && death.waited_in_vain();
        match self.deaths.after(death, &problem) {
            _ if was_in_vain => self.give_up(problem),
            Decision::StartAfter(pause) => {
                self.due = Some(Instant::now() + pause);
                self.shared.change(|s| {
                    s.restarts += u64::from(!problem.passes);
                    s.last_error = Some(problem.why.clone());
                    s.problem = problem.passes.then(|| until_it_passes(problem));
                    s.state = if was_ever_ready { State::Restarting } else { s.state };
                });
            }
            Decision::GiveUp => self.give_up(problem),
        }
    }

    /// Nothing more is tried until somebody asks, or nobody has any more what somebody else has.
    fn give_up(&mut self, problem: Problem) {
        tracing::error!(why = problem.why, "gave up on the server");
        self.shared.change(|s| {
            s.state = State::GivenUp;
            s.problem = Some(problem);
        });
    }

    /// The new server did not come up: the old one serves again.
    fn hand_back(&mut self, upgrade: Upgrade, problem: &Problem) {
        upgrade.failed("the server", &problem.why, &mut self.binary);
        self.deaths = Deaths::default();
        self.begin();
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
