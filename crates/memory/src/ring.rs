//! The ring: appending under the lock, reading under a pin.
//!
//! Promise: bytes given out for writing lie in `[tail, released + ring_bytes)`, bytes given out
//! for reading in `[released, tail)`, so the two never meet; an append is visible whole or not.
//! Never: knows what the bytes mean, and never hands out bytes that wrap.

#[allow(unsafe_code)]
mod raw;

use std::fmt;

use crate::futex::Scope;
use crate::marks::Marks;
use crate::region::Region;

impl Region {
    /// Waits for the right to append.
    #[inline]
    pub fn lock(&self) -> Guard<'_> {
        self.take_lock();
        Guard::new(self)
    }

    /// Keeps the bytes from `from` on in the ring while the pin lives.
    ///
    /// # Panics
    /// If bytes from `from` on were released already.
    pub fn pin(&self, from: u64) -> Pin<'_> {
        let pin = self.try_pin(from);
        pin.unwrap_or_else(|| {
            panic!("bytes below the released mark are given back, {from} cannot be pinned")
        })
    }

    /// Keeps the bytes from `from` on in the ring while the pin lives; `None` if they were released
    /// already.
    #[must_use]
    pub fn try_pin(&self, from: u64) -> Option<Pin<'_>> {
        Pin::new(self, from)
    }
}

/// The right to append to a region, one caller at a time (see [`Region::lock`]).
///
/// A guard that is forgotten, or whose process dies, leaves a lock that the next attachment takes
/// over; whatever was reserved and not published was never there.
#[must_use = "the lock is given back when the guard is dropped"]
pub struct Guard<'a> {
    region: &'a Region,
    /// Nobody else moves it meanwhile.
    tail: u64,
    published: bool,
}

impl<'a> Guard<'a> {
    #[inline]
    pub(crate) fn new(region: &'a Region) -> Guard<'a> {
        Guard { region, tail: region.words_of_marks().tail(), published: false }
    }

    /// The marks; nobody moves the tail.
    #[must_use]
    #[inline]
    pub fn marks(&self) -> Marks {
        Marks { tail: self.tail, ..self.region.marks() }
    }

    /// Where the next byte goes.
    #[must_use]
    #[inline]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Makes the next `bytes` bytes of the ring visible to readers, in one store. Does nothing to a
    /// region that another host has attached: see [`Region::is_current`].
    ///
    /// # Panics
    /// If they were not free to be reserved.
    #[inline]
    pub fn publish(&mut self, bytes: u64) {
        let at = self.free(bytes).expect("only what was reserved is published");
        let mapping = self.region.mapping();
        mapping.persist(at, bytes);
        if self.region.publish(self.tail, self.tail + bytes) {
            self.tail += bytes;
            self.published = true;
        }
        mapping.persist_control();
    }

    /// Empties the ring and puts all three marks at `lsn`. For recovery only: whoever reads the
    /// marks meanwhile may see them out of order. A death half-way is finished by the next attach.
    ///
    /// # Panics
    /// If a pin lives.
    pub fn reset(&mut self, lsn: u64) {
        let pins = self.region.pins().hold();
        assert!(pins.is_empty(), "nobody reads a ring that is emptied");
        self.region.reset_marks(lsn);
        self.tail = lsn;
    }

    /// Where in the mapping the `bytes` bytes from the tail lie; `None` if the ring has no room for
    /// them.
    ///
    /// # Panics
    /// If they would wrap.
    #[inline]
    fn free(&self, bytes: u64) -> Option<u64> {
        let ring = self.region.ring_section();
        if bytes > self.region.words_of_marks().released() + ring.bytes - self.tail {
            return None;
        }
        let at = self.tail & (ring.bytes - 1);
        assert!(at + bytes <= ring.bytes, "what is reserved does not wrap: {bytes} bytes at {at}");
        Some(ring.offset + at)
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Sleepers announce themselves under the lock (see `Region::wait_tail`), so this look needs
        // no fence: who comes later sees what was published.
        let wake = self.published && self.region.bell().has_sleepers();
        self.region.unlock();
        if wake {
            // After the lock is free: whoever wakes may want it.
            self.region.bell().ring_sleepers(Scope::Process);
        }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Guard").field("tail", &self.tail()).finish_non_exhaustive()
    }
}

/// A reader's hold on ring bytes: while it lives, nothing from its start on is overwritten.
#[must_use = "the bytes may be overwritten once the pin is dropped"]
#[derive(Debug)]
pub struct Pin<'a> {
    region: &'a Region,
    from: u64,
}

impl<'a> Pin<'a> {
    /// None if bytes from `from` on were given back already.
    pub(crate) fn new(region: &'a Region, from: u64) -> Option<Pin<'a>> {
        let mut pins = region.pins().hold();
        if from < region.marks().released {
            return None;
        }
        pins.push(from);
        Some(Pin { region, from })
    }

    /// The `bytes` published bytes from position `lsn`.
    ///
    /// # Panics
    /// If they are not all inside `[pin, tail)`, or wrap.
    #[must_use]
    pub fn bytes(&self, lsn: u64, bytes: usize) -> &[u8] {
        let found = self.get(lsn, bytes);
        found.unwrap_or_else(|| {
            let tail = self.region.marks().tail;
            panic!(
                "{bytes} bytes from {lsn}, unbroken: what is there lies in {}..{tail}",
                self.from
            )
        })
    }

    /// The lowest position this pin holds.
    #[must_use]
    pub fn from(&self) -> u64 {
        self.from
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        let mut pins = self.region.pins().hold();
        let at = pins.iter().position(|from| *from == self.from);
        pins.swap_remove(at.expect("a pin that lives is listed"));
    }
}
