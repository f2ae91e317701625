//! The life of one attached volume.
//!
//! Promise: as long as the volume is attached there is a front end, or the reason why not is in the
//! snapshot; what a front end left in memory is drained before the keeper gives up on serving it;
//! the descriptors that programs' mounts depend on stay open throughout.
//! Never: opens a region, a log or the mount. Whatever could crash does so in another process.

mod log;
mod reach;
mod replace;
pub(crate) mod snapshot;
mod state;
mod watch;
mod words;

use crate::heard::{Heard, start_heard};
use crate::held::Held;
use crate::log_place::LogPlace;
use crate::memory;
use crate::memory::Memories;
use crate::orders::{Orders, Report, Task};
use crate::pace::{Pace, SELDOM};
use crate::progress::Progress;
use crate::restart::{Death, Deaths, Decision, SHORT_PAUSE, until_it_passes};
use crate::signs::{new_pulse, silence, unanswered};
use crate::spawn::start_front;
use crate::stall::Stall;
use crate::upgrade::{Request, Upgrade};
use holdfast_config::claims::Verdict;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::signals::is_from_outside;
use holdfast_machine::threads;
use holdfast_memory::Medium;
use rustix::process::{Pid, Signal, kill_process};
use snapshot::{Snapshot, State};
use state::{Event, Front, Phase, Shared, Supervisor, Watch};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use watch::LOOK_EVERY;
use words::{died_text, front_end_of, still_waited_for};

/// A volume that was attached, seen from the keeper.
#[derive(Debug)]
pub(crate) struct Supervised {
    shared: Arc<Shared>,
    events: Sender<Event>,
    thread: Option<JoinHandle<()>>,
}

impl Supervised {
    /// Starts to serve a volume whose mount is made, by front ends of `binary`. `unmount` takes the
    /// mount away again if no front end ever serves it.
    pub(crate) fn start(
        orders: Orders,
        held: Held,
        (binary, memories): (OwnedFd, &Arc<Memories>),
        unmount: fn(&Orders),
    ) -> Outcome<Supervised> {
        let pulse = new_pulse(&orders.whose())?;
        let medium = if orders.server.is_some() { Medium::Private } else { orders.medium() };
        let shared = Arc::new(Shared {
            snapshot: Mutex::new(Snapshot {
                state: State::Starting,
                problem: None,
                last_error: None,
                recovery: None,
                verdict: None,
                front_end_pid: None,
                restarts: 0,
                upgrades: 0,
                longest_stall: Duration::ZERO,
                standstills: Vec::new(),
                is_cut_off: false,
                copies_cut_off: 0,
                mortal_connections: 0,
                astray: None,
                log_trouble: None,
                home_elsewhere: None,
            }),
            changed: Condvar::new(),
            pulse,
            stall: Stall::default(),
            memories: memories.clone(),
            medium,
        });
        let (sender, events) = channel();
        let supervisor = Supervisor {
            orders,
            has_started: held.was_served,
            was_served: held.was_served,
            held,
            binary,
            upgrade: None,
            is_renewing: false,
            shared: shared.clone(),
            events,
            sender: sender.clone(),
            deaths: Deaths::default(),
            pace: Pace::default(),
            was_ever_ready: false,
            is_unmounted: false,
            is_wanted_again: false,
            let_go: None,
            unmount,
            watch: Watch::default(),
            log_place: LogPlace::default(),
        };
        let thread = threads::thread("supervisor", move || supervisor.run())?;
        Ok(Supervised { shared, events: sender, thread: Some(thread) })
    }

    /// What is known now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.shared.lock().clone();
        snapshot.longest_stall = snapshot.longest_stall.max(self.shared.stall.so_far());
        snapshot.mortal_connections = self.shared.pulse.mortal_connections();
        snapshot.astray = self.shared.astray().filter(|_| snapshot.state == State::Serving);
        let (pulse, pid, who) = (&self.shared.pulse, snapshot.front_end_pid, "its front end");
        let standing = silence(pulse, pid, who).into_iter().chain(unanswered(pulse, pid, who));
        snapshot.standstills.splice(0..0, standing);
        snapshot
    }

    /// Waits until `done` or until `patience` is over; returns the last snapshot either way.
    pub(crate) fn wait(&self, patience: Duration, done: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let snapshot = self.shared.lock();
        let waited = self.shared.changed.wait_timeout_while(snapshot, patience, |s| !done(s));
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// The mount is gone: a volume without a front end has to be detached by a new one.
    pub(crate) fn unmounted(&self) {
        let _ = self.events.send(Event::Unmounted);
    }

    /// Whoever still reaches the volume is to hear errors: `by_its_end` if only the end of its
    /// front end can have them hear any.
    pub(crate) fn cut_off(&self, by_its_end: bool) {
        self.shared.change(|s| s.is_cut_off = true);
        if by_its_end {
            let _ = self.events.send(Event::CutOff);
        }
    }

    /// [`Self::cut_off`] of processes that have nothing but a copy of the mount.
    pub(crate) fn cut_off_copies(&self, processes: usize) {
        self.shared.change(|s| s.copies_cut_off = processes);
        self.cut_off(true);
    }

    /// After giving up: counts anew and starts another front end.
    pub(crate) fn try_again(&self) {
        // At once, so that whoever waits for the outcome does not take the old state for it.
        self.shared.change(|s| s.state = State::Restarting);
        let _ = self.events.send(Event::TryAgain);
    }

    /// What an unmounted volume waits for will not come: its front end is ended. Memory and log
    /// stay as they are for the next one.
    pub(crate) fn let_go(&self, why: Problem) {
        let _ = self.events.send(Event::LetGo(why));
    }

    /// Replaces the front end; returns when the new one serves, or the old one is started again.
    /// `whose` is what it serves, for people.
    pub(crate) fn upgrade(&self, whose: &str, binary: &Path, say: Progress<'_>) -> Outcome<()> {
        if let Some(hindrance) = self.shared.memories.hindrance(&self.shared.medium) {
            return Err(memory::refuse_upgrade(&front_end_of(whose), &hindrance));
        }
        Request::make(&front_end_of(whose), binary, say, |request| {
            drop(self.events.send(Event::Upgrade(request)));
        })
    }

    /// Waits for the thread of a volume that is over.
    pub(crate) fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Supervisor {
    fn run(mut self) {
        let mut phase = self.begin(Task::Serve);
        while !matches!(phase, Phase::Over) {
            phase = match self.next_event(&phase) {
                Some(event) => self.heard(event, phase),
                None => self.due(phase),
            };
        }
        // The descriptors close here, and with them the locks on home and log.
    }

    /// The next event, or None when a waiting phase is due.
    fn next_event(&self, phase: &Phase) -> Option<Event> {
        let due = match phase {
            Phase::Waiting(_, due) => Some(*due),
            Phase::Running(front) => self.front_is_due(front),
            _ => None,
        };
        let patience = due.map(|due| due.saturating_duration_since(Instant::now()));
        let look = matches!(phase, Phase::Running(_)).then_some(LOOK_EVERY);
        let patience = [patience, look].into_iter().flatten().min();
        let patience = patience.unwrap_or(Duration::from_secs(3600));
        // It cannot be disconnected: this end keeps a sender for its children's listeners.
        self.events.recv_timeout(patience).ok()
    }

    fn due(&mut self, phase: Phase) -> Phase {
        match phase {
            Phase::Waiting(task, due) if due <= Instant::now() => self.begin(task),
            Phase::Running(front) => {
                self.look();
                self.look_at_home();
                let front = self.look_at_sockets(front);
                let front = self.look_at_log(front);
                Phase::Running(self.kill_if_late(front))
            }
            phase => phase,
        }
    }

    fn heard(&mut self, event: Event, phase: Phase) -> Phase {
        match (event, phase) {
            (Event::Said(report), Phase::Running(front)) => {
                Phase::Running(self.said(report, front))
            }
            (Event::Ended(status), Phase::Running(front)) => self.ended(status, front),
            (Event::Unmounted, phase) => self.unmounted(phase),
            (Event::CutOff, Phase::Running(front)) => {
                // The next one is to give the volume back, and has no connection to the kernel.
                if self.is_unmounted && front.task == Task::Serve {
                    self.signal(Signal::KILL);
                }
                Phase::Running(front)
            }
            (Event::TryAgain, Phase::Idle | Phase::Waiting(..)) => self.begin_anew(),
            (Event::TryAgain, phase) => {
                self.is_wanted_again = true;
                phase
            }
            (Event::LetGo(why), Phase::Running(front)) => {
                self.signal(Signal::KILL);
                self.let_go = Some(why);
                Phase::Running(front)
            }
            (Event::LetGo(why), _) => self.over(State::Failed, Some(why)),
            (Event::Upgrade(request), phase) => self.begin_upgrade(request, phase),
            (_, phase) => phase,
        }
    }

    /// Somebody asked for it: what happened before does not count.
    fn begin_anew(&mut self) -> Phase {
        self.is_wanted_again = false;
        self.deaths = Deaths::default();
        self.begin(self.task())
    }

    /// What a new front end is for.
    fn task(&self) -> Task {
        match self.is_unmounted {
            true => Task::Detach,
            false => Task::Serve,
        }
    }

    fn begin(&mut self, task: Task) -> Phase {
        if task == Task::Drain {
            return self.begin_drain();
        }
        match self.try_begin(task) {
            Ok(front) => Phase::Running(front),
            Err(problem) => {
                let died = Death { lived: Duration::ZERO, was_ready: false, was_killed: false };
                self.again(task, died, problem)
            }
        }
    }

    fn try_begin(&mut self, task: Task) -> Outcome<Front> {
        self.shared.memories.put_back(&self.shared.medium, &self.orders.whose())?;
        self.restore_log()?;
        let orders = Orders { task, resume: self.has_started, ..self.orders.clone() };
        if self.is_unmounted {
            self.held.close_to_users();
            self.shared.change(|s| s.is_cut_off = true);
        }
        let _is_told_of_one_that_serves = self.mend_sockets();
        let sender = self.sender.clone();
        let hear = move |heard| {
            drop(sender.send(match heard {
                Heard::Said(report) => Event::Said(report),
                Heard::Ended(status) => Event::Ended(status),
            }));
        };
        let pulse = &self.shared.pulse;
        let start = || start_front(self.binary.as_fd(), &orders, &self.held, pulse);
        let pid = start_heard(start, hear)?;
        self.has_started = true;
        self.upgrade.iter_mut().for_each(Upgrade::started);
        tracing::info!(volume = orders.name, pid, ?task, "front end started");
        self.shared.change(|s| s.front_end_pid = Some(pid));
        let (was_ready, fault, drained, kill_at) = (false, None, None, None);
        Ok(Front { task, started: Instant::now(), was_ready, fault, drained, kill_at })
    }

    fn said(&mut self, report: Report, mut front: Front) -> Front {
        match report {
            Report::Ready { recovery, verdict } => {
                front.was_ready = true;
                // Who was told to end before it could say so is not the one that is waited for.
                if !self.upgrade.as_ref().is_some_and(Upgrade::waits_for_the_old) {
                    self.ready(recovery, verdict);
                }
            }
            Report::Drained(text) => front.drained = Some(text),
            Report::Failed(problem) => {
                self.shared.change(|s| s.last_error = Some(problem.to_string()));
                front.fault = Some(problem);
            }
        }
        front
    }

    fn ready(&mut self, recovery: String, verdict: Verdict) {
        let Shared { memories, medium, .. } = &*self.shared;
        let pid = self.shared.lock().front_end_pid;
        if pid.is_some_and(|pid| !memories.hold(medium, pid)) {
            return self.signal(Signal::KILL);
        }
        self.was_ever_ready = true;
        self.pace = Pace::default();
        let stall = self.shared.stall.end();
        tracing::info!(volume = self.orders.name, recovery, ?stall, "front end serves");
        let upgrade = self.upgrade.take();
        self.shared.change(|s| {
            s.state = State::Serving;
            s.problem = None;
            s.recovery = Some(recovery);
            s.verdict = Some(verdict);
            s.upgrades += u64::from(upgrade.is_some());
            s.longest_stall = s.longest_stall.max(stall);
        });
        upgrade.into_iter().for_each(Upgrade::succeeded);
    }

    fn ended(&mut self, status: ExitStatus, front: Front) -> Phase {
        self.watch = Watch::default();
        self.shared.change(|s| {
            s.front_end_pid = None;
            s.standstills.clear();
        });
        if let Some(why) = self.let_go.take() {
            return self.over(State::Failed, Some(why));
        }
        // Any program ends well; a successor serves first. One that only drains or gives back was
        // there before, and never serves.
        let is_no_front_end =
            self.upgrade.is_some() && front.task == Task::Serve && !front.was_ready;
        if status.success() && !is_no_front_end {
            return match front.task {
                Task::Serve | Task::Detach => self.over(State::Detached, None),
                Task::Drain => self.drained(Ok(front.drained)),
            };
        }
        let is_upgraded = self.upgrade.as_ref().is_some_and(Upgrade::waits_for_the_old);
        let is_replaced = std::mem::take(&mut self.is_renewing) || is_upgraded;
        if is_replaced && front.task == Task::Serve {
            return self.begin_successor();
        }
        let mut problem = front.fault.unwrap_or_else(|| died_text(&self.orders, status));
        // Of what one lacks that got as far as to run, whoever asked for the first is told.
        problem.passes &= self.was_ever_ready || self.was_served || front.task == Task::Drain;
        tracing::warn!(volume = self.orders.name, %status, why = problem.why, "front end died");
        if front.task == Task::Drain {
            return self.drained(Err(problem));
        }
        let was_killed = status.signal().is_some_and(is_from_outside);
        let lived = front.started.elapsed();
        self.again(front.task, Death { lived, was_ready: front.was_ready, was_killed }, problem)
    }

    /// A front end died, or could not even be started.
    fn again(&mut self, task: Task, death: Death, problem: Problem) -> Phase {
        if self.was_ever_ready {
            self.shared.stall.begin();
        }
        if let Some(upgrade) = self.upgrade.take() {
            return self.hand_back(upgrade, &problem);
        }
        let Shared { memories, medium, .. } = &*self.shared;
        let problem = match death.was_ready {
            true => problem,
            false => self.log_reason(memories.reason(medium, problem)),
        };
        // Whoever uses a home that is not served yet is named to who wants it to be.
        let is_in_use = problem.exit == Exit::InUse && !self.was_served && !self.was_ever_ready;
        let decision = match is_in_use {
            true => Decision::GiveUp,
            false => self.deaths.after(death, &problem),
        };
        let Decision::StartAfter(pause) = decision else { return self.give_up(task, problem) };
        self.shared.change(|s| {
            s.restarts += u64::from(!problem.passes);
            s.last_error = Some(problem.why.clone());
            s.problem = problem.passes.then(|| until_it_passes(problem));
            match task {
                Task::Serve if self.was_ever_ready && !self.is_unmounted => {
                    s.state = State::Restarting;
                }
                _ => {}
            }
        });
        Phase::Waiting(self.task(), Instant::now() + pause)
    }

    /// Starting front ends is of no use. Nothing that was acknowledged may wait in memory for a
    /// better day: it is brought to the log's device by a process that does not need the volume.
    fn give_up(&mut self, task: Task, problem: Problem) -> Phase {
        let was_given_up = self.shared.lock().state == State::GivenUp;
        if !was_given_up {
            tracing::error!(volume = self.orders.name, why = problem.why, "gave up on front ends");
        }
        let given_up = task == Task::Serve && self.has_users() && !self.is_unmounted;
        let problem = match given_up {
            true => still_waited_for(&self.orders, problem),
            false => problem,
        };
        self.shared.change(|s| {
            s.problem = Some(problem);
            if given_up {
                s.state = State::GivenUp;
            }
        });
        match self.orders.volume {
            Some(_) if !was_given_up => self.begin_drain(),
            _ => self.given_up(),
        }
    }

    /// Whether programs may be on what is served, as they were under an earlier keeper.
    fn has_users(&self) -> bool {
        self.was_ever_ready || self.was_served
    }

    fn begin_drain(&mut self) -> Phase {
        // One attempt is enough, unless it failed for want of something that comes back; its
        // failure is no death of a front end.
        match self.try_begin(Task::Drain) {
            Ok(front) => Phase::Running(front),
            Err(problem) => self.drained(Err(problem)),
        }
    }

    /// The drain after giving up has ended.
    fn drained(&mut self, how: Outcome<Option<String>>) -> Phase {
        let text = match how {
            Ok(text) => text,
            Err(why) if why.passes => {
                self.shared.change(|s| s.last_error = Some(why.to_string()));
                return Phase::Waiting(Task::Drain, Instant::now() + SHORT_PAUSE);
            }
            Err(why) => Some(format!("draining what it left in memory failed too ({})", why.why)),
        };
        if let Some(text) = text {
            tracing::error!(volume = self.orders.name, text, "after giving up");
            self.shared.change(|s| {
                s.problem.iter_mut().for_each(|problem| problem.why += &format!("; {text}"));
            });
        }
        self.given_up()
    }

    /// Nothing is left to do after giving up.
    fn given_up(&mut self) -> Phase {
        if self.is_wanted_again {
            return self.begin_anew();
        }
        if self.has_users() && !self.is_unmounted {
            return self.idle();
        }
        if !self.is_unmounted {
            (self.unmount)(&self.orders);
        }
        let problem = self.shared.lock().problem.clone();
        self.over(State::Failed, problem)
    }

    /// Nothing runs until somebody asks; but what somebody else has may be let go of.
    fn idle(&mut self) -> Phase {
        let is_passing = |problem: &Problem| problem.exit == Exit::InUse;
        if !self.shared.lock().problem.as_ref().is_some_and(is_passing) {
            return Phase::Idle;
        }
        let now = Instant::now();
        Phase::Waiting(Task::Serve, now + self.pace.attempt(now, SELDOM))
    }

    fn unmounted(&mut self, phase: Phase) -> Phase {
        self.is_unmounted = true;
        self.shared.change(|s| s.state = State::Detaching);
        match phase {
            Phase::Running(front) => {
                // A front end that serves learns it from the kernel, or is told if nothing was
                // mounted, and detaches by itself. A drain ends first: the region has one user at
                // a time.
                self.is_wanted_again = front.task == Task::Drain;
                if front.task == Task::Serve && self.held.fuse.is_none() {
                    self.signal(Signal::INT);
                }
                Phase::Running(front)
            }
            Phase::Waiting(..) | Phase::Idle => {
                self.deaths = Deaths::default();
                self.begin(Task::Detach)
            }
            Phase::Over => Phase::Over,
        }
    }

    /// Signals the front end; it may be gone.
    fn signal(&self, signal: Signal) {
        let pid = self.shared.lock().front_end_pid;
        let pid = pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let _ = pid.map(|pid| kill_process(pid, signal));
    }

    fn over(&mut self, state: State, problem: Option<Problem>) -> Phase {
        tracing::info!(volume = self.orders.name, ?state, "volume is no longer attached");
        self.held.close_to_users();
        // All of a disk is in its memory.
        let is_at_home = state == State::Detached && self.orders.volume.is_some();
        self.shared.memories.let_go(&self.shared.medium, is_at_home);
        let stall = self.shared.stall.end();
        self.shared.change(|s| {
            s.longest_stall = s.longest_stall.max(stall);
            s.state = state;
            s.problem = problem;
        });
        Phase::Over
    }
}
