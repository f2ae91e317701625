//! The life of one attached volume.
//!
//! Promise: as long as the volume is attached there is a front end, or the reason why not is in the
//! snapshot; what a front end left in memory is drained before the keeper gives up on serving it;
//! the descriptors that programs' mounts depend on stay open throughout.
//! Never: opens a region, a log or the mount. Whatever could crash does so in another process.

pub(crate) mod known;
mod log;
mod reach;
mod replace;
mod state;
mod watch;
mod words;

use crate::kept::held::Held;
use crate::memory;
use crate::memory::Memories;
use crate::orders::{Orders, Report, Task};
use crate::power::Power;
use crate::supervisor::heard::{Heard, start_heard};
use crate::supervisor::life::Life;
use crate::supervisor::life::known::State;
use crate::supervisor::life::process::Process;
use crate::supervisor::life::watched::{LOOK_EVERY, Watched};
use crate::supervisor::log_place::LogPlace;
use crate::supervisor::pace::{Pace, SELDOM};
use crate::supervisor::progress::Progress;
use crate::supervisor::restart::{Death, SHORT_PAUSE};
use crate::supervisor::spawn::{Told, start_front};
use crate::supervisor::upgrade::Request;
use holdfast_config::claims::{PowerSource, Verdict};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::signals::is_from_outside;
use holdfast_machine::threads;
use holdfast_memory::Medium;
use known::{KnownFront, OfFront};
use rustix::process::Signal;
use state::{Event, Front, Phase, Supervisor, Watch};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use words::{died_text, front_end_of, still_waited_for};

/// A volume that was attached, seen from the keeper.
#[derive(Debug)]
pub(crate) struct FrontEndLife {
    watched: Arc<Watched<OfFront>>,
    medium: Medium,
    events: Sender<Event>,
    thread: Option<JoinHandle<()>>,
}

impl FrontEndLife {
    /// Starts to serve a volume whose mount is made, by front ends of `binary`. `unmount` takes the
    /// mount away again if no front end ever serves it.
    pub(crate) fn start(
        orders: Orders,
        held: Held,
        (binary, memories, power): (OwnedFd, &Arc<Memories>, Option<Arc<Power>>),
        unmount: fn(&Orders),
    ) -> Outcome<FrontEndLife> {
        let medium = if orders.server.is_some() { Medium::Private } else { orders.medium() };
        let media = BTreeMap::from([(orders.whose(), medium.clone())]);
        let (who, whose) = ("its front end", front_end_of(&orders.whose()));
        let of = OfFront::default();
        let watched = Watched::new((who, &orders.whose()), of, memories.clone(), media)?;
        let watched = Arc::new(watched);
        let concerned = power.iter().zip(&orders.volume);
        concerned.for_each(|(power, volume)| power.concerns(volume, &watched));
        let (sender, events) = channel();
        let supervisor = Supervisor {
            orders,
            has_started: held.was_served,
            was_served: held.was_served,
            held,
            life: Life::new(whose, binary, watched.clone()),
            watched: watched.clone(),
            power,
            events,
            sender: sender.clone(),
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
        Ok(FrontEndLife { watched, medium, events: sender, thread: Some(thread) })
    }

    /// What is known now.
    pub(crate) fn known(&self) -> KnownFront {
        let mut known = self.watched.known();
        known.of.mortal_connections = self.watched.pulse.mortal_connections();
        let mut astray = self.watched.astray().into_values();
        known.of.astray = astray.next().filter(|_| known.state == State::Serving);
        known
    }

    /// Waits as long as that is so, or until `patience` is over; returns what is known then.
    pub(crate) fn wait_while(
        &self,
        patience: Duration,
        waits: impl Fn(&KnownFront) -> bool,
    ) -> KnownFront {
        self.watched.wait_while(patience, waits)
    }

    /// The mount is gone: a volume without a front end has to be detached by a new one.
    pub(crate) fn unmounted(&self) {
        let _ = self.events.send(Event::Unmounted);
    }

    /// Whoever still reaches the volume is to hear errors: `by_its_end` if only the end of its
    /// front end can have them hear any.
    pub(crate) fn cut_off(&self, by_its_end: bool) {
        self.watched.change(|s| s.of.is_cut_off = true);
        if by_its_end {
            let _ = self.events.send(Event::CutOff);
        }
    }

    /// [`Self::cut_off`] of processes that have nothing but a copy of the mount.
    pub(crate) fn cut_off_copies(&self, processes: usize) {
        self.watched.change(|s| s.of.copies_cut_off = processes);
        self.cut_off(true);
    }

    /// After giving up: counts anew and starts another front end.
    pub(crate) fn try_again(&self) {
        // At once, so that whoever waits for the outcome does not take the old state for it.
        self.watched.change(|s| s.state = State::Restarting);
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
        if let Some(hindrance) = self.watched.memories.hindrance(&self.medium) {
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
                self.look_at_barrier();
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
                    self.watched.signal(Signal::KILL);
                }
                Phase::Running(front)
            }
            (Event::TryAgain, Phase::Idle | Phase::Waiting(..)) => self.begin_anew(),
            (Event::TryAgain, phase) => {
                self.is_wanted_again = true;
                phase
            }
            (Event::LetGo(why), Phase::Running(front)) => {
                self.watched.signal(Signal::KILL);
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
        self.life.begin_anew();
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
        let Watched { memories, media, .. } = &*self.watched;
        media.iter().try_for_each(|(whose, medium)| memories.put_back(medium, whose))?;
        self.restore_log()?;
        let orders = Orders { task, resume: self.has_started, ..self.orders.clone() };
        if self.is_unmounted {
            self.held.close_to_users();
            self.watched.change(|s| s.of.is_cut_off = true);
        }
        let _is_told_of_one_that_serves = self.mend_sockets();
        let sender = self.sender.clone();
        let hear = move |heard| {
            drop(sender.send(match heard {
                Heard::Said(report) => Event::Said(report),
                Heard::Ended(status) => Event::Ended(status),
            }));
        };
        let (binary, pulse) = (self.life.binary(), &self.watched.pulse);
        let lease = self.power.as_ref().filter(|_| orders.power != PowerSource::None);
        let told = Told { pulse, lease: lease.map(|power| power.lease()) };
        let start = || start_front(binary, &orders, &self.held, &told);
        let pid = start_heard(start, hear)?;
        self.has_started = true;
        tracing::info!(volume = orders.name, pid, ?task, "front end started");
        self.life.started(pid);
        Ok(Front { task, process: Process::new(pid), drained: None })
    }

    fn said(&mut self, report: Report, mut front: Front) -> Front {
        match report {
            Report::Ready { recovery, verdict, armed } => {
                front.process.was_ready = true;
                // Who was told to end before it could say so is not the one that is waited for.
                if !self.life.waits_for_the_old() {
                    self.ready(front.process.pid, recovery, (verdict, armed));
                }
            }
            Report::GivenUp { taken_back } => {
                self.watched.change(|s| s.of.given_up = s.of.given_up.max(Some(taken_back)));
            }
            Report::Drained(text) => front.drained = Some(text),
            Report::Failed(problem) => {
                self.watched.change(|s| s.last_error = Some(problem.to_string()));
                front.process.fault = Some(problem);
            }
        }
        front
    }

    fn ready(&mut self, pid: u32, recovery: String, (verdict, armed): (Verdict, Option<Verdict>)) {
        if !self.watched.hold(pid) {
            return self.watched.signal(Signal::KILL);
        }
        self.was_ever_ready = true;
        self.pace = Pace::default();
        let text = recovery.clone();
        let stall = self.life.serves(|s| {
            s.of.recovery = Some(recovery);
            s.of.verdict = Some(verdict);
            s.of.armed = armed;
        });
        tracing::info!(volume = self.orders.name, recovery = text, ?stall, "front end serves");
    }

    fn ended(&mut self, status: ExitStatus, front: Front) -> Phase {
        self.watch = Watch::default();
        self.watched.change(|s| {
            s.pid = None;
            s.standstills.clear();
        });
        if let Some(why) = self.let_go.take() {
            return self.over(State::Failed, Some(why));
        }
        // Any program ends well; a successor serves first. One that only drains or gives back was
        // there before, and never serves.
        let is_no_front_end =
            self.life.is_upgrading() && front.task == Task::Serve && !front.process.was_ready;
        if status.success() && !is_no_front_end {
            return match front.task {
                Task::Serve | Task::Detach => self.over(State::Detached, None),
                Task::Drain => self.drained(Ok(front.drained)),
            };
        }
        if self.life.was_replaced() && front.task == Task::Serve {
            return self.begin_successor();
        }
        let was_killed = status.signal().is_some_and(is_from_outside);
        let death = front.process.death(was_killed);
        let mut problem = front.process.fault.unwrap_or_else(|| died_text(&self.orders, status));
        // Of what one lacks that got as far as to run, whoever asked for the first is told.
        problem.passes &= self.was_ever_ready || self.was_served || front.task == Task::Drain;
        tracing::warn!(volume = self.orders.name, %status, why = problem.why, "front end died");
        if front.task == Task::Drain {
            return self.drained(Err(problem));
        }
        self.again(front.task, death, problem)
    }

    /// A front end died, or could not even be started.
    fn again(&mut self, task: Task, death: Death, problem: Problem) -> Phase {
        if self.was_ever_ready {
            self.watched.stall.begin();
        }
        if self.life.hands_back(&problem) {
            return self.begin(self.task());
        }
        let problem = match death.was_ready {
            true => problem,
            false => self.log_reason(self.watched.reason(problem)),
        };
        // Whoever uses a home that is not served yet is named to who wants it to be.
        let is_in_use = problem.exit == Exit::InUse && !self.was_served && !self.was_ever_ready;
        let is_awaited = task == Task::Serve && self.was_ever_ready && !self.is_unmounted;
        let next = match is_in_use {
            true => Err(problem),
            false => self.life.after(death, problem, is_awaited),
        };
        match next {
            Ok(due) => Phase::Waiting(self.task(), due),
            Err(problem) => self.give_up(task, problem),
        }
    }

    /// Starting front ends is of no use. Nothing that was acknowledged may wait in memory for a
    /// better day: it is brought to the log's device by a process that does not need the volume.
    fn give_up(&mut self, task: Task, problem: Problem) -> Phase {
        let was_given_up = self.watched.lock().state == State::GivenUp;
        if !was_given_up {
            tracing::error!(volume = self.orders.name, why = problem.why, "gave up on front ends");
        }
        let given_up = task == Task::Serve && self.has_users() && !self.is_unmounted;
        let problem = match given_up {
            true => still_waited_for(&self.orders, problem),
            false => problem,
        };
        self.watched.change(|s| {
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
                self.watched.change(|s| s.last_error = Some(why.to_string()));
                return Phase::Waiting(Task::Drain, Instant::now() + SHORT_PAUSE);
            }
            Err(why) => Some(format!("draining what it left in memory failed too ({})", why.why)),
        };
        if let Some(text) = text {
            tracing::error!(volume = self.orders.name, text, "after giving up");
            self.watched.change(|s| {
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
        let problem = self.watched.lock().problem.clone();
        self.over(State::Failed, problem)
    }

    /// Nothing runs until somebody asks; but what somebody else has may be let go of.
    fn idle(&mut self) -> Phase {
        let is_passing = |problem: &Problem| problem.exit == Exit::InUse;
        if !self.watched.lock().problem.as_ref().is_some_and(is_passing) {
            return Phase::Idle;
        }
        let now = Instant::now();
        Phase::Waiting(Task::Serve, now + self.pace.attempt(now, SELDOM))
    }

    fn unmounted(&mut self, phase: Phase) -> Phase {
        self.is_unmounted = true;
        self.watched.change(|s| s.state = State::Detaching);
        match phase {
            Phase::Running(front) => {
                // A front end that serves learns it from the kernel, or is told if nothing was
                // mounted, and detaches by itself. A drain ends first: the region has one user at
                // a time.
                self.is_wanted_again = front.task == Task::Drain;
                if front.task == Task::Serve && self.held.fuse.is_none() {
                    self.watched.signal(Signal::INT);
                }
                Phase::Running(front)
            }
            Phase::Waiting(..) | Phase::Idle => {
                self.life.begin_anew();
                self.begin(Task::Detach)
            }
            Phase::Over => Phase::Over,
        }
    }

    fn over(&mut self, state: State, problem: Option<Problem>) -> Phase {
        tracing::info!(volume = self.orders.name, ?state, "volume is no longer attached");
        self.held.close_to_users();
        // All of a disk is in its memory.
        let is_at_home = state == State::Detached && self.orders.volume.is_some();
        let Watched { memories, media, .. } = &*self.watched;
        media.values().for_each(|medium| memories.let_go(medium, is_at_home));
        let stall = self.watched.stall.end();
        self.watched.change(|s| {
            s.longest_stall = s.longest_stall.max(stall);
            s.state = state;
            s.problem = problem;
        });
        Phase::Over
    }
}
