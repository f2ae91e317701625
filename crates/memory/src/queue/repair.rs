//! What brings slots back: after their owner's death, and after damage.
//!
//! Promise: a slot of a dead owner is free again as soon as no list leads to it and the server
//! owes it nothing; a rebuilt page is usable at once, and every request it held is answered.
//! Never: decides who is dead; frees a slot that the server works on.

use std::sync::atomic::Ordering;

use crate::orderings::{QUEUE_STEAL, SLOT_FREE, SLOT_TAKE};
use crate::queue::Queue;
use crate::queue::page::{END, SLOTS, SlotIndex};
use crate::queue::server::{Damage, Links, slot_at};
use crate::queue::slot::{Owner, Response, State, Word};

/// The status of a request that was lost from a damaged page. Send it again.
pub const REBUILT: u32 = u32::MAX;

impl Queue<'_> {
    /// Frees the slots whose owner is dead; how many. For the taker, between two takes.
    ///
    /// What a dead owner has put is still taken, and its slot comes back at the next reclaim after
    /// the response.
    ///
    /// # Errors
    /// The page is damaged, and nothing was freed.
    pub fn reclaim(&self, is_dead: &dyn Fn(Owner) -> bool) -> Result<u32, Damage> {
        // First who is dead, then what is linked: the dead link nothing any more.
        let words: [Word; SLOTS] = self.words();
        let dead = words.map(|word| word.owner().is_some_and(is_dead));
        let linked = self.counted(self.linked())?;
        let lost = |index: &SlotIndex| {
            let number = index.number();
            match words[number].state() {
                Some(State::Held | State::Done) => dead[number],
                // It died between saying so and linking it.
                Some(State::Queued) => dead[number] && !linked.lead_to(*index),
                _ => false,
            }
        };
        Ok(SlotIndex::all().filter(lost).filter(|at| self.give_up(*at, words[at.number()])).count()
            as u32)
    }

    /// Empties the list and answers every request that waited in it with [`REBUILT`]. For the
    /// taker, after damage.
    ///
    /// A client that stops for the whole of this call between two steps of a put may link its slot
    /// afterwards; that is damage again, and found by the take that meets it.
    pub fn rebuild(&self) {
        // EDGE put-to-steal: what was put before is seen to wait.
        self.page.watched.head.swap(END, QUEUE_STEAL);
        for index in SlotIndex::all() {
            let word = self.page.slot(index).look();
            match (word.state(), word.owner()) {
                (Some(State::Queued), Some(_)) => self.turn_back(index),
                (Some(State::Free), _) | (Some(_), Some(_)) => {}
                // No word of ours.
                _ => {
                    self.give_up(index, word);
                }
            }
        }
    }

    /// Answers a request that was not served.
    fn turn_back(&self, index: SlotIndex) {
        let response = Response { status: REBUILT, ..Response::default() };
        self.page.slot(index).write_response(&response);
        // If the slot has moved on, somebody else has answered for it.
        let _moved_on = self.tell_done(index, State::Queued);
    }

    /// Frees a slot, unless its word has changed.
    fn give_up(&self, index: SlotIndex, word: Word) -> bool {
        // EDGE freed-to-taken: what its owner did to the slot is over.
        self.page.slot(index).swap(word, word.freed(), SLOT_FREE)
    }

    /// The words of all slots.
    fn words(&self) -> [Word; SLOTS] {
        let mut words = [Word(0); SLOTS];
        for index in SlotIndex::all() {
            // EDGE freed-to-taken: what the owner did before its last step is seen.
            words[index.number()] = Word(self.page.slot(index).word.load(SLOT_TAKE));
        }
        words
    }

    /// The slots that the list leads to. Clients put on top meanwhile, which changes nothing below.
    fn linked(&self) -> Result<Links, Damage> {
        let mut links = Links::default();
        // EDGE put-to-steal: having seen the head, the links below it are whole.
        let mut offset = self.page.watched.head.load(QUEUE_STEAL);
        // Newest first down to the oldest that was turned, then from there up to its tail.
        while offset != END {
            let index = slot_at(offset)?;
            links.follow_to(index)?;
            offset = self.page.slot(index).next.load(Ordering::Relaxed);
        }
        Ok(links)
    }
}
