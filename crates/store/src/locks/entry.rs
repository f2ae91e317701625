//! The locks on one name: who has some, and who waits for one.
//!
//! Promise: locks that are held at once bear one another; nobody is passed by a request that would
//! make him wait longer, except by those who hold a lock here already and ask for more.
//! Never: waits, or looks at another name.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use holdfast_pages::Slot;

use crate::locks::modes::{KeyMode, Mode};

/// The locks on one name.
#[derive(Default)]
pub(super) struct Entry {
    granted: Granted,
    /// In the order in which they are served.
    queue: Vec<Waiting>,
}

/// A lock that somebody has.
#[derive(Clone, Copy)]
struct Held {
    slot: Slot,
    mode: Mode,
    is_loser: bool,
}

/// Most names have one holder, and no memory of their own.
#[derive(Default)]
struct Granted {
    first: Option<Held>,
    others: Vec<Held>,
}

/// A request that was not granted at once.
struct Waiting {
    slot: Slot,
    /// All that the holder will have then.
    mode: Mode,
    bell: Arc<Bell>,
}

/// What a request has come to.
pub(super) enum Answer {
    /// It is granted.
    Granted,
    /// It waits in the queue, and this will ring when it is granted.
    Queued(Arc<Bell>),
    /// A transaction that nobody runs any more has what was asked for.
    Loser(Slot),
}

/// How a wait ends.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    /// The request is granted.
    Granted,
    /// It is not, and not queued any more: nobody runs this transaction now, which is in its way.
    Loser(Slot),
}

/// Rings once, when a request does not wait any more.
#[derive(Default)]
pub(super) struct Bell {
    rung: Mutex<Option<Outcome>>,
    told: Condvar,
}

impl Bell {
    fn ring(&self, outcome: Outcome) {
        *self.rung.lock().expect("nothing panics with a bell") = Some(outcome);
        self.told.notify_one();
    }

    /// Returns when it has rung, or after so long.
    pub(super) fn wait_for(&self, time: Duration) -> Option<Outcome> {
        let rung = self.rung.lock().expect("nothing panics with a bell");
        let rung = self.told.wait_timeout_while(rung, time, |rung| rung.is_none());
        *rung.expect("nothing panics with a bell").0
    }

    /// Returns when it has rung.
    pub(super) fn wait(&self) -> Outcome {
        let rung = self.rung.lock().expect("nothing panics with a bell");
        let rung = self.told.wait_while(rung, |rung| rung.is_none());
        rung.expect("nothing panics with a bell").expect("it has rung")
    }
}

impl Granted {
    fn iter(&self) -> impl Iterator<Item = &Held> {
        self.first.iter().chain(&self.others)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Held> {
        self.first.iter_mut().chain(&mut self.others)
    }

    fn set(&mut self, held: Held) {
        self.remove(held.slot);
        match self.first {
            None => self.first = Some(held),
            Some(_) => self.others.push(held),
        }
    }

    fn remove(&mut self, slot: Slot) {
        self.first = self.first.filter(|held| held.slot != slot);
        self.others.retain(|held| held.slot != slot);
    }
}

impl Entry {
    /// Whether nobody has a lock here, and nobody waits for one.
    pub(super) fn is_empty(&self) -> bool {
        self.granted.iter().next().is_none() && self.queue.is_empty()
    }

    /// Who may change the key, if anybody may.
    pub(super) fn exclusive(&self) -> Option<Slot> {
        let mut held = self.granted.iter();
        held.find(|held| held.mode.key == KeyMode::Exclusive).map(|held| held.slot)
    }

    /// What this transaction has here.
    pub(super) fn mode_of(&self, slot: Slot) -> Mode {
        let held = self.granted.iter().find(|held| held.slot == slot);
        held.map_or(Mode::NONE, |held| held.mode)
    }

    /// Grants `mode` beside what the transaction has, if nobody stands against it.
    pub(super) fn try_grant(&mut self, slot: Slot, mode: Mode) -> bool {
        let mode = self.mode_of(slot).join(mode);
        let is_free = self.blockers(slot, mode, self.queue.len()).next().is_none();
        if is_free {
            self.granted.set(Held { slot, mode, is_loser: false });
        }
        is_free
    }

    /// Like `try_grant`, but queues what is not granted.
    pub(super) fn ask(&mut self, slot: Slot, mode: Mode) -> Answer {
        if self.try_grant(slot, mode) {
            return Answer::Granted;
        }
        let mode = self.mode_of(slot).join(mode);
        if let Some(loser) = self.loser_against(slot, mode) {
            return Answer::Loser(loser);
        }
        let bell = Arc::new(Bell::default());
        let waiting = Waiting { slot, mode, bell: Arc::clone(&bell) };
        self.queue.insert(self.place_for(slot), waiting);
        Answer::Queued(bell)
    }

    /// Gives a lost transaction a lock, whoever else has one.
    pub(super) fn adopt(&mut self, slot: Slot, mode: Mode) {
        self.granted.set(Held { slot, mode, is_loser: true });
    }

    /// Marks what the transaction has as a loser's, and tells those who wait for it.
    pub(super) fn orphan(&mut self, slot: Slot) {
        let held = self.granted.iter_mut().filter(|held| held.slot == slot);
        held.for_each(|held| held.is_loser = true);
        let mut at = 0;
        while let Some(waiting) = self.queue.get(at) {
            match self.loser_against(waiting.slot, waiting.mode) {
                Some(loser) => self.queue.remove(at).bell.ring(Outcome::Loser(loser)),
                None => at += 1,
            }
        }
        self.grant_waiting();
    }

    /// A loser who stands against this request, if there is one.
    pub(super) fn loser_against(&self, slot: Slot, mode: Mode) -> Option<Slot> {
        self.against(slot, mode).find(|held| held.is_loser).map(|held| held.slot)
    }

    /// Takes away what the transaction has, and grants what can be granted then.
    pub(super) fn release(&mut self, slot: Slot) {
        self.granted.remove(slot);
        self.grant_waiting();
    }

    /// Ends the transaction's wait. False if it was granted what it waited for before.
    pub(super) fn give_up(&mut self, slot: Slot) -> bool {
        let Some(at) = self.place_of(slot) else { return false };
        self.queue.remove(at);
        self.grant_waiting();
        true
    }

    /// Whom the transaction waits for; nobody, unless it waits here.
    pub(super) fn blockers_of(&self, slot: Slot) -> impl Iterator<Item = Slot> {
        self.place_of(slot).into_iter().flat_map(move |at| {
            let waiting = &self.queue[at];
            self.blockers(slot, waiting.mode, at)
        })
    }

    /// Who stands against a request of this transaction.
    pub(super) fn in_the_way(&self, slot: Slot, mode: Mode) -> impl Iterator<Item = Slot> {
        self.blockers(slot, self.mode_of(slot).join(mode), self.queue.len())
    }

    /// Where in the queue the transaction belongs: at its end, unless it has something here; then
    /// behind those who have, too.
    fn place_for(&self, slot: Slot) -> usize {
        if !self.has_some(slot) {
            return self.queue.len();
        }
        self.queue.iter().take_while(|waiting| self.has_some(waiting.slot)).count()
    }

    fn has_some(&self, slot: Slot) -> bool {
        self.mode_of(slot) != Mode::NONE
    }

    /// Who stands against this request, if so many came before it.
    fn blockers(&self, slot: Slot, mode: Mode, before: usize) -> impl Iterator<Item = Slot> {
        // Whoever has something here would often wait for one who waits for him.
        let before = if self.has_some(slot) { 0 } else { before };
        let waiting = self.queue[..before].iter().filter(move |one| !one.mode.is_compatible(mode));
        self.against(slot, mode).map(|held| held.slot).chain(waiting.map(|one| one.slot))
    }

    /// Others' locks that do not bear this one.
    fn against(&self, slot: Slot, mode: Mode) -> impl Iterator<Item = &Held> {
        let others = self.granted.iter().filter(move |held| held.slot != slot);
        others.filter(move |held| !held.mode.is_compatible(mode))
    }

    fn place_of(&self, slot: Slot) -> Option<usize> {
        self.queue.iter().position(|waiting| waiting.slot == slot)
    }

    fn grant_waiting(&mut self) {
        let mut at = 0;
        while let Some(&Waiting { slot, mode, .. }) = self.queue.get(at) {
            if self.blockers(slot, mode, at).next().is_some() {
                at += 1;
                continue;
            }
            self.granted.set(Held { slot, mode, is_loser: false });
            self.queue.remove(at).bell.ring(Outcome::Granted);
        }
    }
}
