//! Whether all of a node is as it should be, not only its head.
//!
//! Promise: a node that passes can be read at every place, and is one that changes can have made.
//! Never: panics, whatever the bytes are.

use std::iter;
use std::ops::Range;

use holdfast_pages::Unfit;

use crate::node::node_change::check_entries;
use crate::node::{NODE_BYTES, Node};

impl Node<'_> {
    /// Looks at every entry, at what lies between them, and at the fences.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn check(&self) -> Result<(), Unfit> {
        let shape = self.shape();
        shape.check()?;
        if self.prefix() != shape.prefix() {
            return Err(Unfit("the prefix is not what the fences share"));
        }
        self.check_heap()?;
        check_entries(&shape, self.entries())
    }

    /// Whether entries lie in the heap, beside one another, and zeros between.
    fn check_heap(&self) -> Result<(), Unfit> {
        let places = (0..self.count()).map(|place| self.checked_place(place));
        let mut places = places.collect::<Result<Vec<_>, _>>()?;
        places.sort_unstable_by_key(|place| place.start);
        let begins = places.iter().map(|place| place.start).chain([NODE_BYTES]);
        let ends = iter::once(self.slots_end()).chain(places.iter().map(|place| place.end));
        let mut room = 0;
        for (end, begin) in ends.zip(begins) {
            let between = self.bytes_of(end..begin).ok_or(Unfit("entries overlap"))?;
            if between.iter().any(|byte| *byte != 0) {
                return Err(Unfit("something lies between the entries"));
            }
            room += between.len();
        }
        if room == self.room() { Ok(()) } else { Err(Unfit("the room is another")) }
    }

    fn checked_place(&self, place: usize) -> Result<Range<usize>, Unfit> {
        let entry = self.try_entry(place).ok_or(Unfit("an entry is damaged"))?;
        let first = self.first_of(place) == crate::node::first_four(entry.suffix);
        let place = self.entry_place(place);
        let fits = first && place.start >= self.heap();
        if fits { Ok(place) } else { Err(Unfit("a slot is damaged")) }
    }
}

#[cfg(test)]
mod tests;
