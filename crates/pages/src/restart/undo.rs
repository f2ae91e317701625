//! What running transactions would have to undo.
//!
//! Promise: of each transaction the bodies of the changes that are not undone, oldest first, and
//! what of them is new since the last mark.
//! Never: undoes anything, or looks into a body.

use crate::stream::rsn::Slot;

/// The stacks of all transactions. One that has nothing on it is as if it were not there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undo {
    /// By slot. Slots are reused, the lowest first, so there are as many as there were transactions
    /// at once; and what a stack has allocated serves the next transaction.
    stacks: Vec<Stack>,
    /// Slots whose stack is not as it was at the last mark; some of them may be after all.
    touched: Vec<Slot>,
}

/// The changes of one transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stack {
    bytes: Vec<u8>,
    /// Where each body ends.
    ends: Vec<usize>,
    /// How many there were at the last mark.
    marked: usize,
    /// How many of these have been there ever since.
    kept: usize,
    /// Whether the slot is in `touched`.
    is_touched: bool,
}

impl Undo {
    /// A transaction changed something.
    pub(crate) fn push(&mut self, slot: Slot, body: &[u8]) {
        let stack = self.touch(slot);
        stack.bytes.extend_from_slice(body);
        stack.ends.push(stack.bytes.len());
    }

    /// A transaction undid its newest change.
    ///
    /// # Panics
    /// If it has none.
    pub(crate) fn pop(&mut self, slot: Slot) {
        let stack = self.touch(slot);
        let left = stack.ends.len().checked_sub(1).expect("whoever pops knows of a change");
        stack.truncate(left);
    }

    /// A transaction ended, whatever it had not undone.
    pub(crate) fn end(&mut self, slot: Slot) {
        self.touch(slot).truncate(0);
    }

    /// How many changes a transaction has that are not undone.
    pub(crate) fn len(&self, slot: Slot) -> usize {
        self.stacks.get(usize::from(slot.0)).map_or(0, |stack| stack.ends.len())
    }

    /// Whether a transaction has none.
    pub(crate) fn is_empty(&self, slot: Slot) -> bool {
        self.len(slot) == 0
    }

    /// Puts bodies in the place of all but the first `kept`, or of none if there are fewer.
    pub(crate) fn replace(&mut self, slot: Slot, kept: usize, bodies: &[&[u8]]) {
        self.touch(slot).truncate(kept);
        bodies.iter().for_each(|body| self.push(slot, body));
    }

    /// Stacks with something on them, in order of their slots.
    pub(crate) fn running(&self) -> impl Iterator<Item = (Slot, &Stack)> {
        let numbered = (0..).map(Slot).zip(&self.stacks);
        numbered.filter(|(_, stack)| !stack.ends.is_empty())
    }

    /// Stacks that are not as they were at the last mark, in order of their slots.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (Slot, &Stack)> {
        let mut slots = self.touched.clone();
        slots.sort_unstable();
        let stacks = slots.into_iter().map(|slot| (slot, &self.stacks[usize::from(slot.0)]));
        stacks.filter(|(_, stack)| stack.is_changed())
    }

    /// From now on what is here is not new.
    pub(crate) fn mark(&mut self) {
        for slot in self.touched.drain(..) {
            let stack = &mut self.stacks[usize::from(slot.0)];
            (stack.marked, stack.kept) = (stack.ends.len(), stack.ends.len());
            stack.is_touched = false;
        }
    }

    fn touch(&mut self, slot: Slot) -> &mut Stack {
        let at = usize::from(slot.0);
        if at >= self.stacks.len() {
            self.stacks.resize_with(at + 1, Stack::default);
        }
        let stack = &mut self.stacks[at];
        if !std::mem::replace(&mut stack.is_touched, true) {
            self.touched.push(slot);
        }
        stack
    }
}

impl Stack {
    /// The bodies, oldest first.
    pub(crate) fn bodies(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bodies_above(0)
    }

    /// How many bodies have been there since the last mark.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// The bodies above the first `kept`, oldest first.
    pub(crate) fn bodies_above(&self, kept: usize) -> impl ExactSizeIterator<Item = &[u8]> {
        (kept..self.ends.len()).map(|at| &self.bytes[self.end_of(at)..self.ends[at]])
    }

    fn is_changed(&self) -> bool {
        (self.kept, self.kept) != (self.marked, self.ends.len())
    }

    /// Where the first `bodies` of them end.
    fn end_of(&self, bodies: usize) -> usize {
        bodies.checked_sub(1).map_or(0, |last| self.ends[last])
    }

    fn truncate(&mut self, bodies: usize) {
        let bodies = bodies.min(self.ends.len());
        self.bytes.truncate(self.end_of(bodies));
        self.ends.truncate(bodies);
        self.kept = self.kept.min(bodies);
    }
}

#[cfg(test)]
mod tests;
