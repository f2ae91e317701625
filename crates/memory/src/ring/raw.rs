//! The two places where ring bytes become slices, each with the checks that make it sound.
//!
//! Promise: no byte is in a slice of [`Guard::reserve`] and in one of [`Pin::get`] at once.
//! Never: relies on a caller: what it relies on is asserted here or kept by `region` and `ring`.
//!
//! The argument both stand on. Ring bytes are reached only through these two functions: the rest
//! of a serving process uses the sections before the ring, and one process serves a region
//! (`backing`). A guard is unique (`lock`), and its slice borrows it mutably. A pin's bytes lie in
//! `[pin, tail)` with `pin >= released`, and `released` cannot pass a live pin
//! ([`Region::release`] and [`Guard::reset`] assert it while holding the list of pins). A
//! reservation lies in `[tail, released + ring_bytes)`. Both ranges are parts of one window of
//! `ring_bytes` bytes, so distinct positions are distinct bytes. The tail moves over a reservation
//! only in [`Guard::publish`], when its slice is gone, and moves back only in a reset.
//!
//! [`Region::release`]: crate::Region::release

use super::{Guard, Pin};

/// How far ahead of what is filled the processor is told what will be. Whoever gives the lock back
/// waits until all he stored is in the cache; it takes about as long as a few short appends until
/// a line of the ring is there.
const AHEAD_BYTES: u64 = 512;

impl Guard<'_> {
    /// The `bytes` bytes from the tail, to be filled; `None` while the ring has no room for them.
    ///
    /// They hold whatever was there before. Nothing of them is visible before
    /// [`Guard::publish`]; reserving again gives the same bytes.
    ///
    /// # Panics
    /// If they would wrap: the caller pads to the ring's end first.
    #[inline]
    pub fn reserve(&mut self, bytes: u64) -> Option<&mut [u8]> {
        let at = self.free(bytes)?;
        let mapping = self.region.mapping();
        mapping.fetch_to_write(at + AHEAD_BYTES, bytes.min(AHEAD_BYTES));
        // SAFETY: the range is inside `[tail, released + ring_bytes)` by the check above, which
        // no pin reaches and no other guard has (see the file's head).
        Some(unsafe { mapping.bytes_mut(at, bytes) })
    }
}

impl Pin<'_> {
    /// The `bytes` published bytes from position `lsn`; `None` if they are not all inside
    /// `[pin, tail)`, or wrap.
    #[must_use]
    pub fn get(&self, lsn: u64, bytes: usize) -> Option<&[u8]> {
        let ring = self.region.ring_section();
        let end = lsn.checked_add(bytes as u64)?;
        let at = lsn & (ring.bytes - 1);
        let published = self.from <= lsn && end <= self.region.words_of_marks().tail();
        if !published || at + bytes as u64 > ring.bytes {
            return None;
        }
        // SAFETY: the range is inside `[pin, tail)` by the check above, and stays unwritten while
        // this pin lives, which the slice borrows (see the file's head).
        Some(unsafe { self.region.mapping().bytes(ring.offset + at, bytes as u64) })
    }
}
