//! The queue page as it lies in memory: a header, then the slots.
//!
//! Promise: any bytes at all are a valid page to look at; an offset becomes a slot only here, where
//! it is checked.
//! Never: decides what a slot's content means.
//!
//! Header, 128 bytes: `head` at 0, the offset of the newest request or 0, alone on its line, which
//! the server watches; `bell` at 64, which wakes it; `freed` at 72, where the search for a free
//! slot begins. Slots of 128 bytes follow, so that none shares a line with another, nor the pair
//! of lines that processors fetch together.

use crate::atomics::AtomicU32;
use crate::bell::Bell;
use crate::queue::slot::Slot;

/// Bytes of the page.
pub const PAGE_BYTES: usize = 4096;

/// Bytes of a slot, and of the header before the first.
const SLOT_BYTES: u32 = 128;

/// Requests that can be under way in one page. The models do with three.
pub const SLOTS: usize = if cfg!(model) { 3 } else { PAGE_BYTES / SLOT_BYTES as usize - 1 };

/// The end of a list of slots: the header's own offset, so no slot has it.
pub(crate) const END: u32 = 0;

/// Which slot of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotIndex(u8);

impl SlotIndex {
    /// The slot at an offset read from the page; `None` if there is none.
    pub(crate) fn at(offset: u32) -> Option<SlotIndex> {
        let number = (offset / SLOT_BYTES).checked_sub(1)?;
        let is_slot = offset.is_multiple_of(SLOT_BYTES) && (number as usize) < SLOTS;
        is_slot.then_some(SlotIndex(number as u8))
    }

    /// Where the slot lies, in bytes from the start of the page.
    #[must_use]
    pub fn offset(self) -> u32 {
        SLOT_BYTES * (u32::from(self.0) + 1)
    }

    /// The slot's number, from 0.
    #[must_use]
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = SlotIndex> {
        (0..SLOTS as u8).map(SlotIndex)
    }

    /// All of them, this one first.
    pub(crate) fn all_from(self) -> impl Iterator<Item = SlotIndex> {
        (0..SLOTS as u8).map(move |step| SlotIndex((self.0 + step) % SLOTS as u8))
    }
}

/// What the server watches.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Watched {
    /// Offset of the newest request, [`END`] if there is none.
    pub(crate) head: AtomicU32,
}

/// What neither side waits for with its eyes open.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Aside {
    /// Wakes the server.
    pub(crate) bell: Bell,
    /// Offset of the slot that became free last. A hint: any value will do.
    pub(crate) freed: AtomicU32,
}

/// The page.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) watched: Watched,
    pub(crate) aside: Aside,
    slots: [Slot; SLOTS],
}

#[cfg(not(model))]
const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<Page>() == PAGE_BYTES && size_of::<Slot>() == SLOT_BYTES as usize);
    assert!(offset_of!(Page, slots) == SLOT_BYTES as usize && offset_of!(Page, aside) == 64);
};

impl Page {
    /// A slot.
    pub(crate) fn slot(&self, index: SlotIndex) -> &Slot {
        &self.slots[index.number()]
    }
}

#[cfg(model)]
impl Page {
    /// An empty page outside any mapping, for the models.
    pub(crate) fn new() -> Page {
        let watched = Watched { head: AtomicU32::new(END) };
        let aside = Aside { bell: Bell::new(), freed: AtomicU32::new(END) };
        Page { watched, aside, slots: std::array::from_fn(|_| Slot::new()) }
    }
}
