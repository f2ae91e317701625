//! The end of the keeper.
//!
//! Promise: from the first order to end on nothing is begun anew, and nothing is waited for that
//! was only to begin; what is served is given back. From the second on whoever uses a mount is cut
//! off, and once nothing has moved for [`STILL_MAX`] the process ends, whatever it waits for, and
//! says what it could not do.
//! Never: ends a process that may have the only memory of what was acknowledged.

use super::{Entry, Keeper, NOT_ATTACHED};
use crate::left;
use crate::supervisor::attached::Attached;
use crate::supervisor::life::known::State;
use crate::supervisor::progress::{PROGRESS_EVERY, RETRY_EVERY};
use holdfast_attach::observe::look;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::bounded;
use holdfast_machine::standstill::Look;
use holdfast_machine::threads::{for_each, thread};
use holdfast_memory::Medium;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// How long nothing may move before a keeper that was asked twice ends as it is.
const STILL_MAX: Duration = Duration::from_secs(10);

/// What is to be done after an end that did not end everything.
const KEPT: &str = "memory and logs are kept: see `holdfast status`";

/// How long whoever waits for the end may take to be told of it.
const TELL_PATIENCE: Duration = Duration::from_secs(1);

/// What changes as long as anything gets nearer to its end: what is left, and how far the regions
/// are.
type Marks = (Vec<(String, State)>, Vec<Option<Look>>);

impl Keeper {
    /// Whether somebody asked the keeper to stop.
    pub fn is_ending(&self) -> bool {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn waits_for(&self) -> Vec<String> {
        let waits_for = self.waits_for.lock().unwrap_or_else(PoisonError::into_inner);
        waits_for.values().cloned().collect()
    }

    /// Remembers what the end of a volume waits for, or that it waits no more.
    fn note_wait(&self, name: &str, text: Option<String>) {
        let mut waits_for = self.waits_for.lock().unwrap_or_else(PoisonError::into_inner);
        match text {
            Some(text) => drop(waits_for.insert(name.to_owned(), text)),
            None => drop(waits_for.remove(name)),
        }
    }

    /// Makes [`Self::wait_for_stop`] return. The second time, whoever uses a mount is cut off.
    pub fn ask_to_stop(&self) {
        self.close();
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        if *stopping {
            self.force.store(true, Ordering::Relaxed);
        }
        *stopping = true;
        self.stop_asked.notify_all();
    }

    /// Attaches nothing any more.
    fn close(&self) {
        let _volumes = self.lock();
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked the keeper to stop a second time.
    fn is_forced(&self) -> bool {
        self.force.load(Ordering::Relaxed)
    }

    /// Why nothing is begun, or waited for until it serves, if that is so.
    pub(super) fn refuse_if_ending(&self, what: impl FnOnce() -> String) -> Outcome<()> {
        match self.closing.load(Ordering::Relaxed) {
            true => Err(Problem::new(Exit::Failed, what(), "the keeper ends", "start it again")),
            false => Ok(()),
        }
    }

    /// Returns when somebody asked the keeper to stop.
    pub fn wait_for_stop(&self) {
        let stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.stop_asked.wait_while(stopping, |stopping| !*stopping));
    }

    /// Waits that long; true as soon as somebody asked the keeper to stop.
    pub fn is_asked_to_stop_within(&self, patience: Duration) -> bool {
        let stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.stop_asked.wait_timeout_while(stopping, patience, |stopping| !*stopping);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Unmounts everything and waits until every home is complete. Every problem is told, after
    /// everything else was done.
    pub fn shut_down(&self) -> Outcome<()> {
        self.close();
        let names: Vec<String> = self.lock().keys().cloned().collect();
        let ends: Vec<Outcome<()>> = for_each(&names, |name| self.shut_down_aloud(name));
        self.aloud("the disks", || self.disks().stop(&|| self.is_forced()));
        // Volumes bring their homes what the server has, so it ends after them.
        self.aloud("the server", || {
            self.server().into_iter().for_each(|server| server.stop(&|| self.is_forced()));
        });
        let given_back = self.given_back();
        let entries = std::mem::take(&mut *self.lock()).into_values().filter_map(Entry::here);
        for attached in entries {
            // Somebody may be asking how it is.
            Arc::into_inner(attached).into_iter().for_each(|it| it.life.join());
        }
        let has_failed = names.iter().zip(&ends).filter(|(_, end)| end.is_err());
        let told = given_back.into_iter().chain(has_failed.map(|(name, _)| name.clone())).collect();
        let failed = ends.iter().filter_map(|end| end.clone().err());
        let left = self.volumes_left(&told).err();
        Problem::all(failed.chain(left).chain(self.memories.leave()))
    }

    /// The volumes that this keeper has brought home completely. Whatever has the name of their
    /// memory since is not that.
    fn given_back(&self) -> BTreeSet<String> {
        let all = self.lock().clone().into_iter();
        let here = all.filter_map(|(name, entry)| Some((name, entry.here()?)));
        let is_home = |it: &Arc<Attached>| it.life.known().state == State::Detached;
        here.filter(|(_, attached)| is_home(attached)).map(|(name, _)| name).collect()
    }

    /// Refuses to have ended well while volumes are left of which nothing is told yet.
    fn volumes_left(&self, told: &BTreeSet<String>) -> Outcome<()> {
        let begun = || self.begun.get().cloned();
        let Some(config) = self.config().ok().or_else(begun) else { return Ok(()) };
        left::refuse_volumes(&config, |name| told.contains(name))
    }

    /// Says how it has ended to all who wait for that. The process may end then.
    pub fn say_how_it_ended(&self, how: &Outcome<()>) {
        self.last_word.say(how.clone());
        self.last_word.wait_until_heard(TELL_PATIENCE);
    }

    /// Waits for the end, and passes on how it was.
    pub(crate) fn hear_how_it_ended(&self, pass_on: impl FnOnce(Outcome<()>)) {
        self.last_word.hear(pass_on);
    }

    /// Ends a part of what is served, and whoever asks hears that it is waited for.
    fn aloud(&self, part: &str, end: impl FnOnce()) {
        self.note_wait(part, Some(format!("{part}: being ended")));
        end();
        self.note_wait(part, None);
    }

    /// [`Self::shut_down_one`], and whoever asks hears what it waits for.
    fn shut_down_aloud(&self, name: &str) -> Outcome<()> {
        self.note_wait(name, Some(format!("{name}: being given back")));
        let ended = self.shut_down_one(name);
        self.note_wait(name, None);
        ended
    }

    fn shut_down_one(&self, name: &str) -> Outcome<()> {
        let mut spoken: Option<Instant> = None;
        let mut say = |text: &str| {
            self.note_wait(name, Some(text.to_owned()));
            tracing::info!("{text}");
        };
        loop {
            // Whoever attaches it needs the lock to say that it is there.
            let found = self.lock().get(name).cloned();
            match found {
                None => return Ok(()),
                Some(Entry::Here(attached)) if attached.life.known().is_over() => {
                    return Ok(());
                }
                Some(Entry::Here(_)) => {}
                // It is just being attached; it can be detached when it is.
                Some(Entry::Coming(_)) => {
                    std::thread::sleep(RETRY_EVERY);
                    continue;
                }
            }
            let problem = match self.umount(name, self.is_forced(), &mut say) {
                Ok(_) => return Ok(()),
                Err(problem) if problem.exit == Exit::InUse => problem,
                // Whoever unmounted it otherwise was faster.
                Err(problem) if problem.why == NOT_ATTACHED => continue,
                Err(problem) => {
                    tracing::error!("{problem}");
                    return Err(problem);
                }
            };
            let Problem { what, why, .. } = &problem;
            let text = format!(
                "{what} waits: {why}; it goes on waiting until they are stopped, or a second \
                 signal or `holdfast shutdown` cuts them off"
            );
            if spoken.is_none_or(|at| at.elapsed() > 5 * PROGRESS_EVERY) {
                tracing::warn!("{text}");
                spoken = Some(Instant::now());
            }
            self.note_wait(name, Some(text));
            std::thread::sleep(RETRY_EVERY);
        }
    }

    /// From now on somebody sees to it that the process ends once it was asked to twice, whatever
    /// it waits for: a disk, a lock, a process, or a thread of its own.
    pub fn end_in_any_case(self: &Arc<Keeper>) -> Outcome<()> {
        let keeper = Arc::clone(self);
        thread("end", move || keeper.end_once_nothing_moves()).map(drop)
    }

    fn end_once_nothing_moves(&self) {
        let stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.stop_asked.wait_while(stopping, |_| !self.is_forced()));
        let (mut seen, mut since) = (self.marks(), Instant::now());
        while since.elapsed() < STILL_MAX {
            std::thread::sleep(RETRY_EVERY);
            let now = self.marks();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
        let waits = match self.waits_for() {
            waits if waits.is_empty() => "what it had begun".to_owned(),
            waits => waits.join("; "),
        };
        let why =
            format!("nothing has moved for {} s, and it waited for {waits}", STILL_MAX.as_secs());
        let unended = Problem::new(Exit::Failed, "ending everything", why, KEPT);
        tracing::error!("the keeper ends as it is: {unended}");
        let memories = self.memories.clone();
        let left = bounded::ask(PathBuf::from("memory"), move || memories.leave());
        let left = left.unwrap_or_default();
        self.say_how_it_ended(&Problem::all([unended].into_iter().chain(left)));
        std::process::exit(Exit::Failed as i32)
    }

    /// How far everything is; what does not answer does not move.
    fn marks(&self) -> Option<Marks> {
        let attached = self.lock().clone().into_iter();
        let attached = attached.filter_map(|(name, entry)| Some((name, entry.here()?)));
        let (mut states, mut media) = (Vec::new(), Vec::<Medium>::new());
        for (name, attached) in attached {
            states.push((name, attached.life.known().state));
            media.push(attached.volume.medium());
        }
        let fronts = self.disks().known().into_iter();
        states.extend(fronts.filter_map(|(name, front)| Some((name, front.ok()?.state))));
        states.extend(self.server().map(|it| ("the server".to_owned(), it.known().state)));
        let services = self.begun.get().map(|config| config.services()).unwrap_or_default();
        media.extend(services.into_iter().map(|(_, log)| log.memory.medium()));
        let looks =
            bounded::ask(PathBuf::from("regions"), move || media.iter().map(look).collect());
        Some((states, looks.ok()?))
    }
}
