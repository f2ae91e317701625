//! A volume in this process, by either way in: its log is here, or the server has it.
//!
//! Promise: what a way changes is in this file; serving, cleaning and giving back do not know it.
//! Never: reports to the keeper, or mounts anything.

use crate::cached::HomeInUse;
use crate::leased::Leased;
use crate::life::unless_away;
use crate::parts::{Parts, Place, is_full};
use crate::stale::end_when_stale;
use holdfast_attach::bond::{
    Badge, Bond, Ends, RegionNote, UNNOTED_NS, Wearer, note_complete, now_ns,
};
use holdfast_attach::foreseen::{SHOWN_MAX, changed_home};
use holdfast_attach::home::Volume;
use holdfast_attach::logs::{self, recovery_text, region, told_lacking};
use holdfast_attach::observe::{observe, region_problem};
use holdfast_client::{ConnectError, LogClient};
use holdfast_config::claims::{Class, PowerSource, Verdict};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_io::Files;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_keeper::orders::Server;
use holdfast_log::{CommitError, CommitLog, Log, Marks, OpenError, ReadError, words};
use holdfast_machine::found::on_storage_of;
use holdfast_memory::{AttachError, Region};
use holdfast_volume::words::PLEDGE;
use holdfast_volume::{
    Attached, CleanError, DirectoryVolume, Told, VolumeError, changed_by_others, keep_room_aside,
    touching,
};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

/// How often the home is told how far its log has got.
const NOTED_EVERY: Duration = Duration::from_millis(250);

/// How soon, and how seldom, is looked whether the threads behind a volume have ended.
const ENDING: Duration = Duration::from_millis(1);
const ENDING_MAX: Duration = Duration::from_millis(64);

const _: () = assert!(2 * NOTED_EVERY.as_nanos() < UNNOTED_NS.cast_unsigned() as u128);

/// So little of a log is a cleaner's own marks, and nothing is applied to the home for it.
const IDLE_BYTES: u64 = 64 << 10;

/// What the kernel knows of a volume that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    /// A mount goes on with the node numbers that a process before gave out.
    GoesOn,
    /// There is no mount yet, or none any more.
    KnowsNothing,
}

/// An open volume.
pub(super) struct Opened {
    pub(super) volume: Volume,
    home: HomeInUse,
    /// Its log, if this process drains it.
    log: Option<Arc<Log>>,
    /// The memory of that log.
    region: Option<Arc<Region>>,
    /// Its region, if another host may take that over.
    followed: Vec<Arc<Region>>,
    /// What the home wears.
    wearer: Arc<Wearer>,
    pub(super) verdict: Verdict,
    /// The right to acknowledge from memory meanwhile, if it may ever be had.
    pub(super) leased: Option<Arc<Leased>>,
    pub(super) recovery: String,
}

impl Opened {
    /// Runs `serve` with the threads of the volume, and of its log if that is here, behind it.
    /// `given_up` hears of each time that a lease was taken back, and nothing is left of it.
    pub(super) fn with_background<T>(
        &self,
        given_up: &(dyn Fn(u64) + Sync),
        serve: impl FnOnce() -> T,
    ) -> io::Result<T> {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let threads = self.start_threads(scope, &stop, given_up);
            let served = threads.as_ref().ok().map(|_| serve());
            stop.store(true, Ordering::Relaxed);
            self.see_them_end(&threads?);
            Ok(served.expect("it serves where there are threads"))
        })
    }

    /// Wakes those who rest, again and again: one may have looked before it was told to stop, and
    /// rest after. What waits for a disk ends when that does.
    fn see_them_end(&self, threads: &[ScopedJoinHandle<'_, ()>]) {
        let mut pause = ENDING;
        while !threads.iter().all(ScopedJoinHandle::is_finished) {
            self.region.iter().for_each(|region| region.wake_tail_waiters());
            threads.iter().for_each(|thread| thread.thread().unpark());
            std::thread::sleep(pause);
            pause = (pause * 2).min(ENDING_MAX);
        }
    }

    /// Starts the threads behind `serve`, or none that does not end at `stop`.
    fn start_threads<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        stop: &'scope AtomicBool,
        given_up: &'scope (dyn Fn(u64) + Sync),
    ) -> io::Result<Vec<ScopedJoinHandle<'scope, ()>>> {
        let builder = |name: &str| Builder::new().name(name.to_owned());
        let mut threads = Vec::new();
        threads.push(builder("cleaner").spawn_scoped(scope, || self.volume.run_cleaner(stop))?);
        if let Some(log) = &self.log {
            threads.push(builder("drainer").spawn_scoped(scope, || log.run_drainer(stop))?);
            threads.push(builder("preparer").spawn_scoped(scope, || log.run_preparer(stop))?);
            let watch = || end_when_stale(&self.followed, stop);
            threads.push(builder("terms").spawn_scoped(scope, watch)?);
            if let Some(leased) = &self.leased {
                let follow = move || leased.follow(log, stop, given_up);
                threads.push(builder("power").spawn_scoped(scope, follow)?);
            }
        }
        threads.push(builder("noter").spawn_scoped(scope, || self.note_log_end(stop))?);
        Ok(threads)
    }

    /// Has the home say how far its log has got, and when it was touched: an older copy of the log
    /// is told from it then, and what others do after a restart.
    fn note_log_end(&self, stop: &AtomicBool) {
        let mut noted = None;
        while !stop.load(Ordering::Relaxed) {
            let Marks { durable, released, .. } = self.volume.marks();
            let has_moved = noted != Some((durable, released));
            let is_applied = durable.since(released) <= IDLE_BYTES;
            // A home that fails says so where it matters, and is asked again.
            if (has_moved || !is_applied) && self.wearer.has_reached(durable.get()).is_ok() {
                noted = Some((durable, released));
            }
            std::thread::park_timeout(NOTED_EVERY);
        }
    }
}

impl Parts {
    fn on_storage(&self, verdict: Verdict) -> Outcome<Verdict> {
        on_storage_of(&self.name, &self.volume, verdict, &self.storage)
    }

    /// Opens the volume and recovers it.
    pub(super) fn open(&self, power: PowerSource, kernel: Kernel) -> Outcome<Opened> {
        match &self.log {
            Place::Here(log) => self.open_here(log, power, kernel),
            Place::Server(server) => self.open_through_queue(server, kernel),
        }
    }

    /// Opens the directory over its log. Notes of names that are damaged matter to a kernel that
    /// goes on with its node numbers, and to nobody else.
    fn open_volume(
        &self,
        (home, log): (Arc<dyn Files>, Arc<dyn CommitLog>),
        class: holdfast_volume::Class,
        beside: Option<Arc<dyn Files>>,
        kernel: Kernel,
    ) -> Outcome<(DirectoryVolume, Attached)> {
        beside.iter().for_each(|log| keep_room_aside(&**log));
        let open = || {
            let (home, log, clock) = (home.clone(), log.clone(), Arc::new(RealClock));
            DirectoryVolume::open_beside(home, log, clock, class, beside.clone())
        };
        let wearer = self.home.wearer().clone();
        let open = || noting(&wearer, open);
        let opened = match open() {
            Err(VolumeError::Names(error)) if kernel == Kernel::KnowsNothing => {
                tracing::warn!(volume = self.name, "its notes of names are left out: {error}");
                DirectoryVolume::forget_kernel(&*log).and_then(|()| open())
            }
            opened => opened,
        };
        opened.map_err(|error| self.volume_problem(error))
    }

    fn open_here(
        &self,
        log: &Arc<dyn Files>,
        power: PowerSource,
        kernel: Kernel,
    ) -> Outcome<Opened> {
        let (region, loss) = region(&self.service(), &self.volume.memory, &**log, self.term)?;
        let region = Arc::new(region);
        let memory = logs::real_memory(&self.volume.memory, &region);
        let verdict_with = |power| {
            let verdict = self.volume.verdict_on(&self.name, memory, power)?;
            self.on_storage(verdict)
        };
        let verdict = verdict_with(power)?;
        let leased = self.leased((&verdict, log), verdict_with, region.ring_bytes())?;
        // What was acknowledged under a lease may be in it, whoever comes after.
        let of_note = leased.as_ref().map_or(&verdict, |it| it.verdict_while_held());
        let held = (&self.volume.memory, of_note, region.ring_bytes());
        logs::note_region(&self.service(), &**log, held, loss.clone())?;
        let class = class_of(&verdict);
        let pledge = region.word(PLEDGE).load(Ordering::Relaxed);
        let home = self.home_in_use(region.identity(), pledge)?;
        region.set_word(PLEDGE, home.pledge);
        let followed = self.term.map(|_| region.clone()).into_iter().collect();
        let memory = Some(region.clone());
        let (log, beside) = (log.clone(), Some(log.clone()));
        // A log that has failed and cannot even be read any more is the same failure, not another.
        let has_failed = region.word(words::POISON).load(Ordering::Relaxed) != 0;
        let opened = Log::open(log, region, Arc::new(RealClock), self.volume.log_config());
        let (log, recovery) = opened.map_err(|error| match error {
            OpenError::Io(error) if has_failed => {
                self.commit_problem("opening", &CommitError::Poisoned(Arc::new(error)))
            }
            error => self.volume_problem(VolumeError::Log(error)),
        })?;
        let log = Arc::new(log);
        self.close_home(&*log)?;
        let (volume, attached) =
            self.open_volume((home.files(), log.clone()), class, beside, kernel)?;
        leased.iter().for_each(|it| volume.acknowledge_while(it.clone()));
        let volume = self.home.served(volume).map_err(|error| self.volume_problem(error))?;
        told_lacking(&self.name, &recovery);
        let recovery = recovery_text(&recovery, Some(attached.bytes_applied));
        let lost = loss.map_or(String::new(), |loss| format!("; {}", loss.text()));
        let recovery = recovery + &lost;
        let wearer = self.home.wearer().clone();
        let (log, region) = (Some(log), memory);
        Ok(Opened { volume, home, log, region, followed, wearer, verdict, leased, recovery })
    }

    /// The right to acknowledge from memory while the power is to be relied on, where that makes
    /// memory good enough.
    fn leased(
        &self,
        (verdict, log): (&Verdict, &Arc<dyn Files>),
        verdict_with: impl Fn(PowerSource) -> Outcome<Verdict>,
        ring_bytes: u64,
    ) -> Outcome<Option<Arc<Leased>>> {
        let Some(page) = &self.lease else { return Ok(None) };
        let held = verdict_with(PowerSource::Armed)?;
        if held.class == verdict.class {
            return Ok(None);
        }
        let page = page.try_clone().map_err(|error| {
            let remedy = "see whether descriptors ran out, then mount again";
            Problem::new(Exit::Failed, self.what("following the power for"), error, remedy)
        })?;
        Ok(Some(Arc::new(Leased::new((page, log.clone()), (held, verdict.clone()), ring_bytes))))
    }

    fn open_through_queue(&self, server: &Server, kernel: Kernel) -> Outcome<Opened> {
        let verdict = self.on_storage(server.verdict.clone())?;
        let log = Arc::new(self.connect(server)?);
        let home = self.home_through_queue(&log)?;
        self.close_home(&*log)?;
        let beside = RealFiles::open(&self.volume.log).ok();
        let beside = beside.map(|files| Arc::new(files) as Arc<dyn Files>);
        let class = class_of(&verdict);
        let (volume, attached) = self.open_volume((home.files(), log), class, beside, kernel)?;
        let volume = self.home.served(volume).map_err(|error| self.volume_problem(error))?;
        let recovery = match (attached.records_replayed, attached.bytes_applied) {
            (0, applied) => format!("{} applied to the home", rounded(applied)),
            (replayed, _) => format!("{replayed} changes found in the server's memory"),
        };
        let (followed, wearer) = (Vec::new(), self.home.wearer().clone());
        let (log, region, leased) = (None, None, None);
        Ok(Opened { volume, home, log, region, followed, wearer, verdict, leased, recovery })
    }

    /// Refuses a home that somebody changed while the log has what it lacks; then bars it.
    fn close_home(&self, log: &dyn CommitLog) -> Outcome<()> {
        let wearer = self.home.wearer();
        let failed = |error: io::Error| {
            let remedy = "nothing is lost; mend the home's disk, then mount again";
            Problem::new(Exit::Failed, self.what("looking at the home of"), error, remedy)
        };
        if let Some(badge) = wearer.badge() {
            let Marks { released, durable, .. } = log.marks();
            let end = durable.get();
            self.check_ends(&Ends { released: Some(released.get()), durable: end })?;
            let Badge { alone_since_ns, accepted_ns, .. } = badge;
            let told = Told { alone_since_ns, accepted_ns, now_ns: now_ns() };
            let changed = changed_by_others(&*self.home.files(), log, told);
            let changed = changed.map_err(|error| self.volume_problem(error))?;
            if !changed.is_empty() {
                let what = self.what("opening");
                return Err(changed_home(&what, &self.name, &self.volume, &changed, SHOWN_MAX));
            }
            // The badge of a file is among what changed in it.
            let looked_at = touching(log, &RealClock, || wearer.looked_at(end));
            let noted = looked_at.map_err(|error| self.volume_problem(error))?;
            noted.or_else(unless_full).map_err(failed)?;
        }
        wearer.close().map_err(failed)
    }

    /// Refuses a log that is older than the home, and a home that lacks what the log gave back.
    fn check_ends(&self, ends: &Ends) -> Outcome<()> {
        let log = match &self.log {
            Place::Here(log) => log.clone(),
            Place::Server(_) => match RealFiles::open(&self.volume.log) {
                Ok(files) => Arc::new(files),
                // Whoever has the log open says what is wrong with its disk.
                Err(_) => return Ok(()),
            },
        };
        let bond = Bond::look(&self.name, (&self.volume, self.home.wearer()), &*log)?;
        bond.map_or(Ok(()), |bond| bond.check_ends(ends))
    }

    fn home_through_queue(&self, log: &LogClient) -> Outcome<HomeInUse> {
        let failed = |error| self.volume_problem(VolumeError::Clean(CleanError::Word(error)));
        // The server has the memory, and does not say whose it is; anybody may look.
        let identity = match &self.volume.block_cache {
            Some(_) => observe(&self.volume.medium())?.identity,
            None => [0; 16],
        };
        let home = self.home_in_use(identity, log.word(PLEDGE).map_err(failed)?)?;
        log.set_word(PLEDGE, home.pledge).map_err(failed)?;
        Ok(home)
    }

    fn connect(&self, server: &Server) -> Outcome<LogClient> {
        let ring_bytes = self.volume.memory.size.0;
        LogClient::connect_to_volume(&server.socket, &self.name, ring_bytes).map_err(|error| {
            let exit = match error {
                ConnectError::Unreachable(_) | ConnectError::Memory(_) => Exit::Failed,
                _ => Exit::Usage,
            };
            let remedy =
                "see `holdfast status` for the server; `holdfast upgrade server` starts it";
            let what = self.what("reaching the log of");
            unless_away(&error, Problem::new(exit, what, &error, remedy))
        })
    }

    /// Everything home, then nothing of the volume is left but its log.
    pub(super) fn give_back(&self, mut opened: Opened) -> Outcome<()> {
        let failed = |error| match error {
            CleanError::Log(error) => self.commit_problem("giving back", &error),
            CleanError::Read(error @ ReadError::Damaged(_)) => {
                self.damage_problem("giving back", &error)
            }
            error => {
                let remedy = "nothing is lost; mend the cause, then mount and unmount it again";
                Problem::new(Exit::Failed, self.what("giving back"), error, remedy)
            }
        };
        noting(&opened.wearer, || opened.volume.detach()).map_err(failed)?;
        opened.home.close();
        self.open_home(opened.volume.log_end())?;
        if let Some(log) = &opened.log {
            log.close().map_err(|error| failed(CleanError::Log(error)))?;
            self.note_drained();
        }
        let region = opened.region.take();
        // Nobody writes to the memory any more.
        drop(opened);
        self.remove_useless_cache();
        region.map_or(Ok(()), |region| self.remove_region(&region))
    }

    /// Removes the memory of a log that is home, and nothing that has its name by now.
    fn remove_region(&self, region: &Region) -> Outcome<()> {
        let removed = region.remove_this(&self.volume.medium()).map_err(|error| {
            let remedy = "the home is complete; remove the region by hand";
            Problem::new(Exit::Failed, self.what("removing the region of"), error, remedy)
        })?;
        if !removed {
            tracing::warn!(
                volume = self.name,
                "what has the name of its memory is not its, and stays"
            );
        }
        Ok(())
    }

    /// The home is complete: whoever may enters it, and the log, which ends there, knows.
    fn open_home(&self, log_end: u64) -> Outcome<()> {
        self.home.wearer().complete(log_end).map_err(|error| {
            let remedy = "nothing is lost; mend the home's disk, then mount and unmount it again";
            Problem::new(Exit::Failed, self.what("opening the home of"), error, remedy)
        })?;
        let noted = match &self.log {
            Place::Here(log) => note_complete(&**log),
            Place::Server(_) => RealFiles::open(&self.volume.log).and_then(|it| note_complete(&it)),
        };
        // One who is not told checks the home more strictly, next time.
        noted.unwrap_or_else(|error| {
            tracing::warn!(volume = self.name, %error, "the log does not know that it is complete");
        });
        Ok(())
    }

    /// Nothing is in memory alone any more.
    pub fn note_drained(&self) {
        let Place::Here(log) = &self.log else { return };
        RegionNote::drained(&**log).unwrap_or_else(|error| {
            tracing::warn!(volume = self.name, %error, "the log does not know that it is drained");
        });
    }

    /// Brings what waits in the region to the log's device. What became of it, if there was any,
    /// for people.
    pub fn drain(&self) -> Outcome<Option<String>> {
        let failed = |error| self.commit_problem("draining", &error);
        match &self.log {
            Place::Here(log) => self.drain_here(log),
            Place::Server(server) => {
                let log = self.connect(server)?;
                let marks = log.marks();
                log.commit(marks.tail).map_err(failed)?;
                Ok(drained_text(marks.tail.since(marks.durable)))
            }
        }
    }

    fn drain_here(&self, log: &Arc<dyn Files>) -> Outcome<Option<String>> {
        let (medium, config) = (self.volume.medium(), self.volume.log_config());
        if let Ok(seen) = Region::observe_to_attach(&medium) {
            let foreseen = Log::foresee(&**log, Some(&seen), &config);
            foreseen.map_err(|error| self.log_problem(&error))?;
        }
        let region = match logs::attach(&medium, self.term) {
            Ok(region) => Arc::new(region),
            // Nothing waits where there is nothing, or nothing that can be trusted.
            Err(AttachError::Missing | AttachError::OtherBoot) => {
                return Ok(RegionNote::held_elsewhere(&**log, &self.volume.memory));
            }
            Err(error) => {
                return Err(region_problem("draining", (&self.service(), &medium), &error));
            }
        };
        let marks = region.marks();
        let (log, _) = Log::open(log.clone(), region, Arc::new(RealClock), config)
            .map_err(|error| self.log_problem(&error))?;
        log.close().map_err(|error| self.commit_problem("draining", &error))?;
        Ok(drained_text(marks.tail.saturating_sub(marks.durable)))
    }
}

/// Does work that touches the home, which notes when meanwhile; without another thread for that,
/// before and after.
fn noting<T>(wearer: &Wearer, work: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    // A home that fails says so where it matters.
    let note = || drop(wearer.may_be_touched());
    std::thread::scope(|scope| {
        let go_on_noting = || {
            while !is_done.load(Ordering::Relaxed) {
                note();
                std::thread::park_timeout(NOTED_EVERY);
            }
        };
        let noter = Builder::new().name("noter".into()).spawn_scoped(scope, go_on_noting);
        noter.as_ref().err().into_iter().for_each(|_| note());
        let done = work();
        is_done.store(true, Ordering::Relaxed);
        noter.map_or_else(|_| note(), |noter| noter.thread().unpark());
        done
    })
}

/// What was drained, if anything was.
fn drained_text(bytes: u64) -> Option<String> {
    let drained =
        || format!("{} that it left in memory were drained to the log's disk", rounded(bytes));
    (bytes > 0).then(drained)
}

fn class_of(verdict: &Verdict) -> holdfast_volume::Class {
    match verdict.class {
        Class::Memory => holdfast_volume::Class::Memory,
        Class::Disk => holdfast_volume::Class::Disk,
    }
}

/// A home that has no room for a newer word goes on with the older one, which is as true: what is
/// to make room in it comes through the volume.
fn unless_full(error: io::Error) -> io::Result<()> {
    if is_full(&error) { Ok(()) } else { Err(error) }
}
