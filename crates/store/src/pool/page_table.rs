//! Which frame a page is in.
//!
//! Promise: an answer costs two loads, whatever other pages there are.
//! Never: is a latch: what it says may be over by the time it is read, so look into the frame.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use holdfast_pages::PageNumber;

const PART_BITS: u32 = 14;
const PARTS: usize = 1 << 14;
/// Pages that a store can have: 2 TiB.
pub(crate) const PAGES_MAX: u64 = (PARTS as u64) << PART_BITS;

/// A frame by its number, less one; 0 is none.
type Part = Box<[AtomicU32]>;

/// The table, of which only those parts take memory that were ever used.
pub(crate) struct PageTable {
    parts: Box<[OnceLock<Part>]>,
}

impl PageTable {
    pub(crate) fn new() -> PageTable {
        PageTable { parts: (0..PARTS).map(|_| OnceLock::new()).collect() }
    }

    /// The frame that the page was in a moment ago.
    #[inline]
    pub(crate) fn get(&self, number: PageNumber) -> Option<usize> {
        let part = self.parts.get((number.get() >> PART_BITS) as usize)?.get()?;
        // EDGE page-in-frame: whoever finds the frame finds it as it was when the page came.
        let frame = part[place(number)].load(Ordering::Acquire);
        frame.checked_sub(1).map(|frame| frame as usize)
    }

    /// Says that the page is in this frame.
    ///
    /// # Panics
    /// If no page has such a number.
    pub(crate) fn set(&self, number: PageNumber, frame: usize) {
        let part = self.parts[(number.get() >> PART_BITS) as usize].get_or_init(new_part);
        let frame = u32::try_from(frame + 1).expect("there are fewer frames than 2^32");
        // EDGE page-in-frame: the frame was made ready before.
        part[place(number)].store(frame, Ordering::Release);
    }

    /// Says that the page is in no frame.
    pub(crate) fn clear(&self, number: PageNumber) {
        let part = self.parts[(number.get() >> PART_BITS) as usize].get();
        let part = part.expect("only pages in frames leave them");
        // EDGE page-in-frame: what the page left behind elsewhere was written before.
        part[place(number)].store(0, Ordering::Release);
    }
}

fn place(number: PageNumber) -> usize {
    (number.get() & ((1 << PART_BITS) - 1)) as usize
}

fn new_part() -> Part {
    (0..1 << PART_BITS).map(|_| AtomicU32::new(0)).collect()
}
