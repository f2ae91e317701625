//! The server's side: take the oldest request, answer it.
//!
//! Promise: every field of the page is read once and checked before it is used; a list is followed
//! to each slot at most once; what is wrong comes back as a value.
//! Never: waits for a client. What a client may do at worst is to make its own requests damage.
//!
//! The paper's dequeue. Requests are put newest first. A take steals the whole list with one swap
//! and turns it round in the same pass, so that the oldest comes first; takes that one; and puts
//! the rest back, merged with what came meanwhile. The oldest of a turned list carries the list's
//! `tail`, by which the next take tells it from what was put since, and finds its end at once.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::futex::{self, Scope};
use crate::orderings::{DONE_TELL, QUEUE_STEAL};
use crate::queue::Queue;
use crate::queue::page::{END, SLOTS, SlotIndex};
use crate::queue::slot::{Owner, Request, Response, State, Word};

/// How often a slot's word is tried to be changed. An honest owner changes it once meanwhile, to
/// say that it sleeps.
const TRIES: usize = 3;

/// A request that the server has taken, and owes a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Where it came from, and where its response goes.
    pub slot: SlotIndex,
    /// Whose it is: what the client says.
    pub owner: Owner,
    /// A copy.
    pub request: Request,
}

/// What is wrong with a page. Call [`Queue::rebuild`] and go on, or give the client up.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A link leads to no slot.
    Link {
        /// The offset it holds.
        offset: u32,
    },
    /// The list leads to a slot twice, or does not end.
    Cycle,
    /// A slot is not in the state in which it must be there.
    State {
        /// The slot's offset.
        offset: u32,
        /// Its word.
        word: u32,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link { offset } => write!(out, "a link of the queue leads to byte {offset}"),
            Self::Cycle => write!(out, "the queue's list has no end"),
            Self::State { offset, word } => {
                write!(out, "the slot at byte {offset} has the word {word:#x}, out of turn")
            }
        }
    }
}

impl std::error::Error for Damage {}

/// Requests from the oldest to the newest, stolen from the page.
#[derive(Clone, Copy)]
struct List {
    oldest: SlotIndex,
    newest: SlotIndex,
}

/// The slots that links have led to. No request stands in a list twice, so there are never more
/// links than slots; and turning a circle round opens it, so counting alone would not find it.
#[derive(Default)]
pub(super) struct Links {
    met: [bool; SLOTS],
}

impl Links {
    /// Notes one more.
    pub(super) fn follow_to(&mut self, index: SlotIndex) -> Result<(), Damage> {
        let met_before = std::mem::replace(&mut self.met[index.number()], true);
        if met_before { Err(Damage::Cycle) } else { Ok(()) }
    }

    /// Whether one of them leads there.
    pub(super) fn lead_to(&self, index: SlotIndex) -> bool {
        self.met[index.number()]
    }
}

impl Queue<'_> {
    /// The oldest request; `None` if there is none.
    ///
    /// # Errors
    /// The page is damaged. What was linked at the damage may be unlinked; [`Queue::rebuild`]
    /// answers it.
    pub fn take(&self) -> Result<Option<Taken>, Damage> {
        self.counted(self.take_oldest())
    }

    /// Waits until there may be a request: looks `spins` times, then sleeps until `timeout` has
    /// passed. True if there is one.
    #[must_use]
    pub fn wait_for_work(&self, spins: u32, timeout: Duration) -> bool {
        for _ in 0..spins {
            if self.has_work() {
                return true;
            }
            futex::pause();
        }
        self.page.aside.bell.wait_unless(|| self.has_work(), Some(timeout), Scope::Machine);
        self.has_work()
    }

    /// Answers a request that was taken, and wakes its owner if it sleeps.
    ///
    /// # Errors
    /// The slot is not in the state in which it was taken. Nobody waits for this response.
    pub fn complete(&self, index: SlotIndex, response: &Response) -> Result<(), Damage> {
        let slot = self.page.slot(index);
        let word = slot.look();
        if word.state() != Some(State::Taken) {
            return self.counted(Err(out_of_turn(index, word)));
        }
        slot.write_response(response);
        self.counted(self.tell_done(index, State::Taken))
    }

    /// Counts damage on its way out.
    pub(super) fn counted<T>(&self, result: Result<T, Damage>) -> Result<T, Damage> {
        result.inspect_err(|_| {
            self.damages.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn has_work(&self) -> bool {
        self.page.watched.head.load(Ordering::Relaxed) != END
    }

    fn take_oldest(&self) -> Result<Option<Taken>, Damage> {
        let mut links = Links::default();
        let Some(list) = self.steal(&mut links)? else { return Ok(None) };
        // The rest first: it stays usable if the oldest is damaged.
        self.anchor_rest(list, &mut links)?;
        self.accept(list.oldest).map(Some)
    }

    /// Takes everything off the page, the oldest first.
    fn steal(&self, links: &mut Links) -> Result<Option<List>, Damage> {
        // EDGE put-to-steal: having seen the head, all that it leads to is whole.
        match self.page.watched.head.swap(END, QUEUE_STEAL) {
            END => Ok(None),
            head => self.turn(slot_at(head)?, links).map(Some),
        }
    }

    /// Turns round what was put since the last time, and appends it to what was turned then.
    fn turn(&self, newest: SlotIndex, links: &mut Links) -> Result<List, Damage> {
        let (mut at, mut turned) = (newest, END);
        loop {
            links.follow_to(at)?;
            let slot = self.page.slot(at);
            let older = slot.next.load(Ordering::Relaxed);
            match slot.tail.load(Ordering::Relaxed) {
                END => {}
                tail if turned == END => return Ok(List { oldest: at, newest: slot_at(tail)? }),
                tail => {
                    self.page.slot(slot_at(tail)?).next.store(turned, Ordering::Relaxed);
                    return Ok(List { oldest: at, newest });
                }
            }
            slot.next.store(turned, Ordering::Relaxed);
            if older == END {
                return Ok(List { oldest: at, newest });
            }
            turned = at.offset();
            at = slot_at(older)?;
        }
    }

    /// Puts back all but the oldest of a list, merged with what was put meanwhile.
    fn anchor_rest(&self, list: List, links: &mut Links) -> Result<(), Damage> {
        if list.oldest == list.newest {
            return Ok(());
        }
        let next = self.page.slot(list.oldest).next.load(Ordering::Relaxed);
        let mut rest = List { oldest: slot_at(next)?, newest: list.newest };
        while !self.anchor(rest) {
            // Nobody of ours empties the page meanwhile.
            let more = self.steal(links)?.ok_or(Damage::Cycle)?;
            rest = self.join(rest, more);
        }
        Ok(())
    }

    /// Puts a list back where nothing is; false if something is.
    fn anchor(&self, list: List) -> bool {
        let head = &self.page.watched.head;
        self.page.slot(list.oldest).tail.store(list.newest.offset(), Ordering::Relaxed);
        // Only this taker reads these links; a client that puts on top of them hands them back.
        let order = Ordering::Relaxed;
        head.compare_exchange(END, list.oldest.offset(), order, Ordering::Relaxed).is_ok()
    }

    /// Appends the newer list to the older.
    fn join(&self, older: List, newer: List) -> List {
        let link = &self.page.slot(older.newest).next;
        link.store(newer.oldest.offset(), Ordering::Relaxed);
        List { oldest: older.oldest, newest: newer.newest }
    }

    /// Makes a request the server's, and copies it.
    fn accept(&self, index: SlotIndex) -> Result<Taken, Damage> {
        let word = self.change(index, State::Queued, State::Taken, Ordering::Relaxed)?;
        let request = self.page.slot(index).read_request();
        let owner = word.owner().ok_or(out_of_turn(index, word))?;
        Ok(Taken { slot: index, owner, request })
    }

    /// Makes a written response visible, and wakes the owner if it sleeps.
    pub(super) fn tell_done(&self, index: SlotIndex, from: State) -> Result<(), Damage> {
        // EDGE done-to-read: the response is whole before the state says so.
        let word = self.change(index, from, State::Done, DONE_TELL)?;
        if word.sleeps() {
            futex::wake(&self.page.slot(index).word, 1, Scope::Machine);
        }
        Ok(())
    }

    /// Moves a slot from one state to the next; what its word was.
    fn change(
        &self,
        index: SlotIndex,
        from: State,
        to: State,
        order: Ordering,
    ) -> Result<Word, Damage> {
        let slot = self.page.slot(index);
        let mut word = slot.look();
        for _ in 0..TRIES {
            if word.state() != Some(from) {
                break;
            }
            if slot.swap(word, word.moved_to(to), order) {
                return Ok(word);
            }
            word = slot.look();
        }
        Err(out_of_turn(index, word))
    }
}

/// The slot that a link leads to.
pub(super) fn slot_at(offset: u32) -> Result<SlotIndex, Damage> {
    SlotIndex::at(offset).ok_or(Damage::Link { offset })
}

fn out_of_turn(index: SlotIndex, word: Word) -> Damage {
    Damage::State { offset: index.offset(), word: word.0 }
}
