//! What a log that nobody has open would hand to its reader.
//!
//! Promise: every frame that an open would hand over is shown: those of the ring, if there is one,
//! and otherwise those of the segments. Frames that the reader has got may be shown besides; which
//! those are is said. Nothing is changed.
//! Never: judges damage: what lies behind it is not shown.

use holdfast_core::Lsn;
use holdfast_core::frame::{HEADER_BYTES, Kind, Sealer};
use holdfast_io::Files;
use holdfast_io::checksum::crc32c;
use holdfast_memory::Observed;

use crate::error::OpenError;
use crate::open::check::walk_ring;
use crate::open::found::{Met, OnDamage};
use crate::open::load::load_table;
use crate::open::recovery::{scan, segments_alone};
use crate::read::frames::Frame;
use crate::read::spans::SpanReader;
use crate::segments::segment::Access;

/// See [`crate::Log::unapplied`].
pub(crate) fn unapplied(
    files: &dyn Files,
    region: Option<&Observed>,
    each: &mut dyn FnMut(&Frame<'_>),
) -> Result<Lsn, OpenError> {
    let walked = match region {
        Some(seen) => walk_ring(files, seen, each)?,
        None => None,
    };
    match walked {
        Some(ring) if ring.checked.healable.is_none() => Ok(ring.marked),
        // What the ring does not give back, an open takes from the segments.
        Some(ring) => Ok(of_segments(files, each)?.max(ring.marked)),
        None => of_segments(files, each),
    }
}

fn of_segments(files: &dyn Files, each: &mut dyn FnMut(&Frame<'_>)) -> Result<Lsn, OpenError> {
    let table = load_table(files, Access::Read)?;
    let geometry = segments_alone(&table.catalogue);
    let mut reader = SpanReader::streaming(&table, geometry);
    let sealer = Sealer::new(&table.catalogue.identity, crc32c);
    let first = table.catalogue.first;
    let found = scan(&mut reader, &sealer, first, OnDamage::Stop, &mut |met| {
        if let Met::Frame(header, bytes) = met
            && matches!(header.kind, Kind::Data | Kind::Numbered)
        {
            let payload = &bytes[HEADER_BYTES as usize..][..header.payload_bytes as usize];
            let frame = Frame { header: *header, payload, payload_lsn: header.payload_lsn() };
            frame.of_user().iter().for_each(&mut *each);
        }
        Ok(())
    })?;
    Ok(found.released)
}
