//! Appending: one frame, under the region's lock, published whole.
//!
//! Promise: a frame is stable when this returns; a caller that dies half-way leaves nothing
//! visible; frames of data leave room for marks and seals.
//! Never: waits; touches a file, but for a mark of the reader that the ring has no place for.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_core::Lsn;
use holdfast_core::frame::{
    FLAGS, FRAME_ALIGN, FrameHeader, HEADER_BYTES, Kind, encode_into, encode_mark, frame_end,
    pad_payload_bytes,
};
use holdfast_core::ring::{Occupancy, Place, Refusal};
use holdfast_memory::Guard;

use crate::append::needs::{Needs, tell_marked};
use crate::config::Retention;
use crate::error::{AppendError, CommitError};
use crate::outcome::{Appended, Contents, Marks};
use crate::state::Log;
use crate::words;

/// What goes into a frame besides its payload.
#[derive(Clone, Copy)]
struct Sort {
    kind: Kind,
    contents: Contents,
    durable: Lsn,
}

/// Where a payload comes from.
pub(crate) enum Body<'a> {
    /// It is these, one after the other.
    Parts(&'a [&'a [u8]]),
    /// So many bytes are written by this, which is told position and generation of the frame.
    Filled(u64, &'a mut dyn FnMut(Lsn, u32, &mut [u8])),
}

impl Body<'_> {
    fn bytes(&self) -> u64 {
        match self {
            Body::Parts(parts) => parts.iter().map(|part| part.len() as u64).sum(),
            Body::Filled(bytes, _) => *bytes,
        }
    }
}

impl Log {
    /// See [`Log::append`], [`Log::append_numbered`] and [`Log::append_filled`].
    pub(crate) fn append_data(
        &self,
        kind: Kind,
        contents: Contents,
        body: Body<'_>,
    ) -> Result<Appended, AppendError> {
        assert!(contents.flags & !FLAGS == 0, "only flags that a reader knows are written");
        let payload_bytes = body.bytes();
        let mut guard = self.lock()?;
        let at = self.occupancy_under(&guard);
        let place = self.geometry.place(&at, payload_bytes);
        let place = place.map_err(|refusal| self.refused(refusal, payload_bytes))?;
        let sort = Sort { kind, contents, durable: at.durable };
        let appended = self.put(&mut guard, place, sort, body);
        self.word(words::NEWEST_END).store(appended.end.get(), Ordering::Relaxed);
        drop(guard);
        self.fail_if_stale().map_err(AppendError::Poisoned)?;
        Ok(appended)
    }

    /// Says what the reader is done with: by a mark, which a later watermark has to cover like
    /// data, or in the catalogue, where a mark would take as much of a full ring as it gives. What
    /// says nothing new is left out.
    pub(crate) fn append_reader_mark(&self, released: Lsn) -> Result<(), AppendError> {
        let mut guard = self.lock()?;
        let at = self.occupancy_under(&guard);
        assert!(released <= at.durable, "only durable frames can have been applied");
        if released.get() <= self.word(words::MARKED).load(Ordering::Relaxed) {
            return Ok(());
        }
        let gives_bytes = match self.retention {
            Retention::InRing => released.get().saturating_sub(at.released.get()),
            Retention::OnDevice => u64::MAX, // what makes room there is the drain
        };
        match self.geometry.place_mark(&at, gives_bytes) {
            Ok(place) => {
                let appended = self.put_mark(&mut guard, &at, place, released);
                tell_marked(self.word(words::MARKED), released);
                self.word(words::NEWEST_END).store(appended.end.get(), Ordering::Relaxed);
                drop(guard);
            }
            Err(_) if self.retention == Retention::InRing => {
                drop(guard);
                self.mark_in_catalogue(released)?;
            }
            Err(refusal) => return Err(self.refused(refusal, 0)),
        }
        self.fail_if_stale().map_err(AppendError::Poisoned)
    }

    /// The other place for the reader's position: it takes no room in the ring, and is durable at
    /// once.
    fn mark_in_catalogue(&self, released: Lsn) -> Result<(), AppendError> {
        let needs = || Needs { released, ..self.needs() };
        let number = self.geometry.segment_of(released);
        let recorded = self.segments.record_released(needs, number);
        recorded.map_err(|error| AppendError::Unmarked(Arc::new(error)))?;
        tell_marked(self.word(words::MARKED), released);
        Ok(())
    }

    /// See [`Log::record_mark`].
    pub(crate) fn mark_marked(&self) -> Result<bool, CommitError> {
        let needs = self.needs();
        let below = self.segments.generations_below();
        let recorded = self.segments.record(|| self.needs(), below);
        self.prepared(recorded)?;
        Ok(self.segments.first() >= needs.released)
    }

    /// Appends a mark that says nothing new about the reader, for the watermark in its header.
    /// It needs no cover itself: losing it loses nothing.
    pub(crate) fn append_watermark(&self) -> Result<(), AppendError> {
        let mut guard = self.lock()?;
        let at = self.occupancy_under(&guard);
        let place =
            self.geometry.place_watermark(&at).map_err(|refusal| self.refused(refusal, 0))?;
        let released = Lsn(self.word(words::MARKED).load(Ordering::Relaxed));
        self.put_mark(&mut guard, &at, place, released);
        Ok(())
    }

    /// The right to append, unless nothing is accepted. A region that is another host's by now is
    /// looked at only: its lock is that host's too.
    // Called, it hands its outcome over in memory, and its caller waits to load that.
    #[inline(always)]
    fn lock(&self) -> Result<Guard<'_>, AppendError> {
        self.fail_if_stale().map_err(AppendError::Poisoned)?;
        let guard = self.region.lock();
        self.refuse_if_poisoned()?;
        Ok(guard)
    }

    fn put_mark(
        &self,
        guard: &mut Guard<'_>,
        at: &Occupancy,
        place: Place,
        released: Lsn,
    ) -> Appended {
        let sort = Sort { kind: Kind::Mark, contents: Contents::default(), durable: at.durable };
        self.put(guard, place, sort, Body::Parts(&[&encode_mark(released)]))
    }

    /// Seals the published tail to a block, so that a drain can end there, and returns the tail,
    /// and the watermark in the seal, if one was needed: what was durable when it was made, which
    /// it proves once it is on the device itself. `sealed` is the tail at which the last seal
    /// ended.
    pub(crate) fn seal(&self, sealed: &mut Lsn) -> (Lsn, Option<Lsn>) {
        let mut guard = self.region.lock();
        let at = self.occupancy_under(&guard);
        let Some(end) = self.geometry.seal(&at, *sealed) else { return (at.tail, None) };
        self.pad(&mut guard, at.tail, end, at.durable);
        *sealed = end;
        (end, Some(at.durable))
    }

    /// The marks as admission wants them, a moment old.
    pub(crate) fn occupancy(&self) -> Occupancy {
        self.admission(self.marks())
    }

    /// The marks as admission wants them.
    #[inline]
    fn occupancy_under(&self, guard: &Guard<'_>) -> Occupancy {
        self.admission(Marks::from(guard.marks()))
    }

    #[inline]
    fn admission(&self, marks: Marks) -> Occupancy {
        Occupancy {
            released: marks.released,
            durable: marks.durable,
            tail: marks.tail,
            dirty_bytes_max: self.dirty_bytes_max.load(Ordering::Relaxed),
        }
    }

    /// A refusal as the caller of an append sees it.
    pub(crate) fn refused(&self, refusal: Refusal, payload_bytes: u64) -> AppendError {
        if refusal == Refusal::TooLarge {
            let payload_bytes_max = self.geometry.payload_bytes_max();
            return AppendError::TooLarge { payload_bytes, payload_bytes_max };
        }
        self.word(words::REFUSALS).fetch_add(1, Ordering::Relaxed);
        AppendError::Full
    }

    /// Publishes a pad up to the place if need be, then the frame.
    fn put(&self, guard: &mut Guard<'_>, place: Place, sort: Sort, body: Body<'_>) -> Appended {
        let tail = Lsn(guard.tail());
        if tail < place.lsn {
            self.pad(guard, tail, place.lsn, sort.durable);
        }
        self.put_frame(guard, place.lsn, place.end, sort, body);
        // The lock is held: nobody else counts.
        let frames = self.word(words::FRAMES);
        frames.store(frames.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Appended { lsn: place.lsn, payload: place.lsn.advance(HEADER_BYTES), end: place.end }
    }

    fn pad(&self, guard: &mut Guard<'_>, from: Lsn, to: Lsn, durable: Lsn) {
        let sort = Sort { kind: Kind::Pad, contents: Contents::default(), durable };
        self.put_frame(guard, from, to, sort, Body::Parts(&[]));
    }

    /// Fills `[lsn, end)` with header, body and zeros, and publishes it. A pad has no body: zeros
    /// are its payload.
    #[inline]
    fn put_frame(&self, guard: &mut Guard<'_>, lsn: Lsn, end: Lsn, sort: Sort, body: Body<'_>) {
        let bytes = end.since(lsn);
        let room = guard.reserve(bytes).expect("admission leaves room for every frame");
        let (head, room) = room.split_first_chunk_mut().expect("no frame is without a header");
        clear_from(body.bytes() as usize, room);
        let (used, check) = self.lay(body, lsn, room);
        let payload_bytes = match sort.kind {
            Kind::Pad => pad_payload_bytes(lsn, end),
            Kind::Data | Kind::Mark | Kind::Numbered => used as u32,
        };
        debug_assert!(frame_end(lsn, payload_bytes) == end, "admission knows how long a frame is");
        let check = match sort.kind {
            Kind::Pad => self.pads.get(room.len()).unwrap_or_else(|| self.sealer.more(check, room)),
            Kind::Data | Kind::Mark | Kind::Numbered => check,
        };
        let header = FrameHeader {
            lsn,
            durable: sort.durable,
            payload_bytes,
            payload_check: check,
            generation: self.generation,
            kind: sort.kind,
            flags: sort.contents.flags,
            records: sort.contents.records,
            utc_ns: self.clock.utc_ns(),
        };
        encode_into(&self.sealer, &header, head);
        guard.publish(bytes);
    }

    /// Puts a body into the room of the frame at `lsn`, and returns its length and check. The check
    /// is that of what comes, not of the copy: memory that was stored a moment ago in other pieces
    /// is slow to load, and a copy that went wrong does not match.
    #[inline]
    fn lay(&self, body: Body<'_>, lsn: Lsn, room: &mut [u8]) -> (usize, u32) {
        let mut check = self.sealer.payload_seed();
        let mut used = 0;
        match body {
            Body::Parts(parts) => {
                for part in parts {
                    room[used..used + part.len()].copy_from_slice(part);
                    check = self.sealer.more(check, part);
                    used += part.len();
                }
            }
            Body::Filled(bytes, fill) => {
                used = bytes as usize;
                fill(lsn, self.generation, &mut room[..used]);
                check = self.sealer.more(check, &room[..used]);
            }
        }
        (used, check)
    }
}

/// Zeros what a payload of so many bytes will leave of its room. Before the payload is there: so
/// the last 8 bytes can be zeroed at once, which is all that there is to do for most.
#[inline]
fn clear_from(used: usize, room: &mut [u8]) {
    let left = room.len() - used;
    match room.last_chunk_mut::<{ FRAME_ALIGN as usize }>() {
        Some(last) if left <= last.len() => *last = [0; _],
        _ => room[used..].fill(0),
    }
}
