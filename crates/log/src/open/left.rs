//! What a log that nobody has open still keeps for its reader.
//!
//! Promise: reads no more than an open that trusts the catalogue, and changes nothing; a log whose
//! reader has everything has nothing left.
//! Never: judges damage: what lies behind it is not counted.

use holdfast_core::Lsn;
use holdfast_core::frame::{Kind, Sealer};
use holdfast_io::Files;
use holdfast_io::checksum::crc32c;

use crate::error::OpenError;
use crate::open::found::{Met, OnDamage};
use crate::open::load::load_table;
use crate::open::recovery::{scan, segments_alone, tail_start};
use crate::read::spans::SpanReader;
use crate::segments::segment::Access;

/// See [`crate::Log::left`].
pub(crate) fn left(files: &dyn Files) -> Result<u64, OpenError> {
    let table = load_table(files, Access::Read)?;
    let geometry = segments_alone(&table.catalogue);
    let mut reader = SpanReader::streaming(&table, geometry);
    let sealer = Sealer::new(&table.catalogue.identity, crc32c);
    let start = tail_start(&table.catalogue, geometry);
    // What lies before the start may be changes, too.
    let mut end = start;
    let found = scan(&mut reader, &sealer, start, OnDamage::Stop, &mut |met| {
        if let Met::Frame(header, _) = met
            && matches!(header.kind, Kind::Data | Kind::Numbered)
        {
            end = header.end();
        }
        Ok(())
    })?;
    Ok(bytes_between(found.released, end))
}

fn bytes_between(from: Lsn, to: Lsn) -> u64 {
    to.get().saturating_sub(from.get())
}
