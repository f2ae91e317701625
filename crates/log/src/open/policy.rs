//! What an open does about damaged acknowledged data.
//!
//! Promise: nothing is written before it is known that the log opens; what is mended is on the
//! device before the log is used; a cut is one replacement of the catalogue, so it is made or not.
//! Never: cuts because of an I/O error; overwrites what it cuts out.

use std::collections::BTreeMap;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_core::recovery::Verdict as End;

use crate::config::{Policy, Retention};
use crate::error::OpenError;
use crate::format::buffer::Buffer;
use crate::format::catalogue::HOLES_MAX;
use crate::open::found::{Found, Lost, Met, OnDamage, Recovered};
use crate::open::opening::Opening;
use crate::open::recovery::scan;
use crate::open::refill::Refill;
use crate::range::LsnRange;
use crate::read::spans::SpanReader;
use crate::segments::Table;

impl Opening<'_> {
    /// Scans the segments as the policy says, and writes back what was mended.
    /// `refill` is told of every frame.
    pub(crate) fn recover(
        &self,
        table: &Table,
        refill: &mut Refill<'_>,
    ) -> Result<Recovered, OpenError> {
        let on_damage = match self.config.policy {
            Policy::Refuse => OnDamage::Stop,
            Policy::Repair => OnDamage::Mend,
            Policy::Cut => OnDamage::Pass,
        };
        let mut reader = match on_damage {
            OnDamage::Stop => SpanReader::new(table, self.geometry),
            OnDamage::Mend | OnDamage::Pass => SpanReader::salvaging(table, self.geometry),
        };
        let start = self.scan_start(&table.catalogue);
        let mut take = |met: Met<'_>| {
            if let Met::Frame(header, bytes) = met {
                refill.take(header.lsn, bytes);
            }
            Ok(())
        };
        let mut found = scan(&mut reader, &self.sealer, start, on_damage, &mut take)?;
        if let Some((_, error)) = reader.unread_outside(&[]) {
            return Err(OpenError::Io(error));
        }
        self.refuse_holes(table, found.released)?;
        let lost = self.cut(table, &mut found)?;
        let mended = match found.verdict {
            End::Corrupt { .. } => Vec::new(),
            End::Clean { .. } | End::Torn { .. } => self.write_back(table, &reader)?,
        };
        Ok(Recovered { found, mended, lost })
    }

    /// A ring has no place for a hole.
    fn refuse_holes(&self, table: &Table, released: Lsn) -> Result<(), OpenError> {
        let hole = table.catalogue.holes.iter().find(|hole| hole.to > released);
        match hole.filter(|_| self.config.retention == Retention::InRing) {
            Some(LsnRange { from, to }) => Err(OpenError::Corrupt { from: *from, to: *to }),
            None => Ok(()),
        }
    }

    /// Makes `found` that of the log without what is lost, if any of it is still needed. The log
    /// goes on with a span that has never held anything.
    fn cut(&self, table: &Table, found: &mut Found) -> Result<Option<LsnRange>, OpenError> {
        let needed = found.lost.iter().find(|lost| lost.stretch.to > found.released).copied();
        let Some(Lost { stretch: LsnRange { from, to }, released }) = needed else {
            return Ok(None);
        };
        if table.catalogue.holes.len() >= HOLES_MAX {
            return Err(OpenError::Corrupt { from, to });
        }
        let last = match found.verdict {
            End::Clean { end } | End::Corrupt { from: end, .. } => end,
            End::Torn { end } => end.advance(1),
        };
        let end = last.max(found.proved).align_up(self.geometry.span_bytes());
        if found.released > from {
            found.released = released;
        }
        (found.verdict, found.sealed, found.kept) = (End::Clean { end }, end, end);
        Ok(Some(LsnRange { from, to: end }))
    }

    /// Writes what was mended where it was damaged, and syncs.
    fn write_back(
        &self,
        table: &Table,
        reader: &SpanReader<'_>,
    ) -> Result<Vec<LsnRange>, OpenError> {
        let mut block = Buffer::zeroed(BLOCK_BYTES as usize);
        let mut written = BTreeMap::new();
        for (at, bytes) in reader.patches() {
            block.bytes_mut().copy_from_slice(bytes);
            let segment = self.segment_at(table, *at)?.0;
            segment.write_all(*at, block.bytes()).map_err(OpenError::Io)?;
            written.insert(self.geometry.segment_of(*at), segment);
        }
        for segment in written.values() {
            segment.sync().map_err(OpenError::Io)?;
        }
        Ok(reader.mended().to_vec())
    }
}
