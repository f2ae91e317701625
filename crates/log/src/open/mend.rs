//! Taking a poisoned log into use again, once its device has been seen to.
//!
//! After a failed sync nobody knows what the device kept of what it had taken, and asking again may
//! be answered with a success that means nothing. But the ring still has every frame from
//! `released` on, and what lies below is in the reader's hands. So nothing has to be known: what is
//! needed is written once more, byte for byte where it was, synced, and read back. The durable mark
//! then says the truth again, and stays where it is; what was published behind it is drained by
//! whoever opens the log next.
//!
//! Promise: the poison goes last, after the device has proved that it holds every byte between
//! `released` and `durable`. A mend that fails or dies leaves the log poisoned, to be mended again.
//! Never: changes a frame, moves a mark, or writes where nothing was durable. (Decision 16.)

use std::sync::atomic::Ordering;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_core::handover::check_marks;

use crate::error::OpenError;
use crate::format::buffer::Buffer;
use crate::open::give::refuse_lost;
use crate::open::load::is_of_step;
use crate::open::older::refuse_older;
use crate::open::opening::Opening;
use crate::outcome::Mended;
use crate::segments::Table;
use crate::segments::segment::{Segment, SegmentHeader};
use crate::words;

impl Opening<'_> {
    /// See [`crate::Log::mend`].
    pub(crate) fn mend(self, mut table: Table) -> Result<Mended, OpenError> {
        let poison = self.region.word(words::POISON);
        if poison.load(Ordering::Relaxed) == 0 {
            return Ok(Mended { rewritten_bytes: 0, undrained_bytes: 0 });
        }
        // EDGE ring-filled: as in `open`. Only a ring that is the log is drained, or poisoned.
        let last = self.region.word(words::GENERATION).load(Ordering::Acquire);
        let marks = self.region.marks();
        let (released, durable) = (Lsn(marks.released), Lsn(marks.durable));
        let tail = Lsn(marks.tail);
        check_marks(&self.geometry, released, durable, tail).map_err(OpenError::Marks)?;
        is_of_step(table.catalogue.generations_below, last)?;
        refuse_older(&table, (&self.sealer, self.geometry), durable, tail)?;
        refuse_lost(&mut table, self.config.retention, released)?;
        if let Some(from) = self.walk(released, tail).damaged {
            return Err(OpenError::Corrupt { from, to: tail });
        }
        self.complete(&mut table)?;
        self.list_up_to(&mut table, released, durable.max(released.advance(1)))?;
        self.over_spans(released, durable, |from, to| self.rewrite(&table, from, to))?;
        self.completed(&mut table)?;
        self.over_spans(released, durable, |from, to| self.prove(&table, from, to))?;
        self.record(&mut table, released, durable)?;
        poison.store(0, Ordering::Relaxed);
        let (rewritten_bytes, undrained_bytes) = (durable.since(released), tail.since(durable));
        Ok(Mended { rewritten_bytes, undrained_bytes })
    }

    /// Writes the catalogue: a scan of the segments begins where the ring does, because what lies
    /// below was not proved.
    pub(crate) fn record(
        &self,
        table: &mut Table,
        released: Lsn,
        durable: Lsn,
    ) -> Result<(), OpenError> {
        let mut catalogue = table.catalogue.clone();
        let number = self.geometry.segment_of(released);
        if catalogue.entries.iter().any(|entry| entry.number == number) {
            catalogue.first = catalogue.first.max(released);
        }
        catalogue.durable = durable;
        table.copies.replace(&*self.files, &catalogue).map_err(OpenError::Io)?;
        table.catalogue = catalogue;
        Ok(())
    }

    /// Does something for each stretch of the ring that lies in one span.
    fn over_spans(
        &self,
        from: Lsn,
        to: Lsn,
        mut work: impl FnMut(Lsn, Lsn) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let mut at = from;
        while at < to {
            let end = self.geometry.span_end(at).min(to);
            work(at, end)?;
            at = end;
        }
        Ok(())
    }

    /// Writes a stretch once more. Its first block may begin with bytes that the ring no longer
    /// has; they are the device's own.
    pub(crate) fn rewrite(&self, table: &Table, from: Lsn, to: Lsn) -> Result<(), OpenError> {
        let segment = self.headed(table, from)?;
        let start = from.align_down(BLOCK_BYTES);
        let mut blocks = Buffer::zeroed(to.since(start) as usize);
        if start < from {
            let first = &mut blocks.bytes_mut()[..BLOCK_BYTES as usize];
            segment.read(start, first).map_err(OpenError::Io)?;
        }
        let pin = self.region.pin(from.get());
        let bytes = pin.bytes(from.get(), to.since(from) as usize);
        blocks.bytes_mut()[from.since(start) as usize..].copy_from_slice(bytes);
        segment.write_all(start, blocks.bytes()).map_err(OpenError::Io)?;
        segment.sync().map_err(OpenError::Io)
    }

    /// Reads a stretch from the device and compares it with the ring.
    fn prove(&self, table: &Table, from: Lsn, to: Lsn) -> Result<(), OpenError> {
        let segment = self.segment_at(table, from)?.0;
        let start = from.align_down(BLOCK_BYTES);
        let mut blocks = Buffer::zeroed(to.since(start) as usize);
        segment.read(start, blocks.bytes_mut()).map_err(OpenError::Io)?;
        let pin = self.region.pin(from.get());
        let bytes = pin.bytes(from.get(), to.since(from) as usize);
        match blocks.bytes()[from.since(start) as usize..] == *bytes {
            true => Ok(()),
            false => Err(OpenError::Corrupt { from, to }),
        }
    }

    /// The segment at a position, with its header written again.
    fn headed(&self, table: &Table, at: Lsn) -> Result<Segment, OpenError> {
        let (segment, ready) = self.segment_at(table, at)?;
        if !ready {
            let header = SegmentHeader {
                identity: table.catalogue.identity,
                generation: self.region.word(words::GENERATION).load(Ordering::Relaxed) as u32,
                number: self.geometry.segment_of(at),
                segment_bytes: table.catalogue.segment_bytes,
            };
            segment.write_header(&header, &table.label).map_err(OpenError::Io)?;
        }
        Ok(segment)
    }

    /// The segment at a durable position, and whether its header is whole. It is listed, unless the
    /// log's directory is an older copy.
    pub(crate) fn segment_at(&self, table: &Table, at: Lsn) -> Result<(Segment, bool), OpenError> {
        let number = self.geometry.segment_of(at);
        let slot = table.slots.iter().find(|slot| slot.entry.number == number);
        let slot = slot.ok_or(OpenError::Corrupt { from: at, to: self.geometry.span_end(at) })?;
        Ok((slot.segment.clone(), slot.ready))
    }
}
