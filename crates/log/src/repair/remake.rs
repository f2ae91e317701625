//! Making a log again whose catalogues, or all of whose files, are gone, for memory that has all
//! of it.
//!
//! Of a log that keeps in its ring what its reader has not released, the files say nothing that the
//! ring does not say as well. So a catalogue is enough, of the segments that are left and of others
//! that are not there: the next open makes those, and gives the device again what a mark calls
//! durable (`give`), as it does wherever a segment was lost, before anything more is acknowledged.
//!
//! Promise: there is a log again when the catalogue is there, and it is the one that the memory
//! has. Memory that does not have all of a log makes none.
//! Never: writes where there is a catalogue, or frames of another log; changes a segment, or the
//! ring.

use std::collections::BTreeMap;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_core::handover::check_marks;
use holdfast_core::ring::Geometry;
use holdfast_io::Files;
use holdfast_memory::Observed;

use crate::config::{LogConfig, Retention};
use crate::error::{CreateError, FileFault, OpenError, RemakeError};
use crate::format::catalogue::copies::Copies;
use crate::format::catalogue::{CATALOGUE, Catalogue, ENTRIES_MAX, Entry};
use crate::open::create::keep_room;
use crate::open::load::GENERATION_STEP;
use crate::repair::salvage::{Piece, entries, parity_of, pieces};
use crate::segments::segment::{file_number, header_of, is_used, segment_names};
use crate::words;

/// See [`crate::Log::remake`].
pub(crate) fn remake(
    files: &dyn Files,
    region: &Observed,
    config: &LogConfig,
) -> Result<(), RemakeError> {
    assert!(config.retention == Retention::InRing, "a ring has all of such a log alone");
    config.check().map_err(|fault| RemakeError::Place(CreateError::Config(fault)))?;
    let io = |error| RemakeError::Place(CreateError::Io(error));
    refuse_others(files, region.identity()).map_err(RemakeError::Place)?;
    let left = pieces(files, Some(region.identity())).map_err(io)?;
    let taken = segment_names(files).map_err(io)?;
    let taken: Vec<u32> = taken.iter().filter_map(|name| file_number(name)).collect();
    let catalogue = catalogue_of(region, config, (&left, &taken)).map_err(RemakeError::Memory)?;
    let parity = match left.is_empty() {
        true => config.parity,
        false => parity_of(files, &left, catalogue.segment_bytes).map_err(io)?,
    };
    let catalogue = Catalogue { parity, ..catalogue };
    if !catalogue.is_sensible() {
        let fault = FileFault::Contents;
        return Err(RemakeError::Memory(OpenError::File { name: CATALOGUE.to_owned(), fault }));
    }
    keep_room(files, parity).map_err(io)?;
    Copies::new().replace(files, &catalogue).map_err(io)
}

/// There may be no catalogue but one that is none, as an interrupted attempt leaves it, and no
/// frames of another log. Notes beside a log are not the log.
fn refuse_others(files: &dyn Files, log: [u8; 16]) -> Result<(), CreateError> {
    match Catalogue::load(files) {
        Ok(_) => return Err(CreateError::Exists),
        Err(OpenError::Io(error)) => return Err(CreateError::Io(error)),
        Err(_) => {}
    }
    for name in segment_names(files).map_err(CreateError::Io)? {
        let header = header_of(files, &name).map_err(CreateError::Io)?;
        let is_own = header.is_ok_and(|(header, _)| header.identity == log);
        if !is_own && is_used(files, &name).map_err(CreateError::Io)? {
            return Err(CreateError::Used { name });
        }
    }
    Ok(())
}

/// What a catalogue says that knows of the segments that are left, and calls nothing durable but
/// what the reader has released. `taken` are the numbers of all files that there are.
fn catalogue_of(
    region: &Observed,
    config: &LogConfig,
    (left, taken): (&BTreeMap<u64, Piece>, &[u32]),
) -> Result<Catalogue, OpenError> {
    let generation = region.word(words::GENERATION) as u32;
    if generation == 0 {
        return Err(OpenError::StaleRegion { region: 0, log: 1 });
    }
    let of_left = left.values().next().map(|piece| piece.header.segment_bytes);
    let (ring_bytes, segment_bytes) =
        (region.ring_bytes(), of_left.unwrap_or(config.segment_bytes));
    let too_small = OpenError::RingTooSmall { ring_bytes, needed_bytes: 2 * segment_bytes };
    let geometry = Geometry::new(ring_bytes, segment_bytes).ok_or(too_small)?;
    let marks = region.marks();
    let (released, durable) = (Lsn(marks.released), Lsn(marks.durable));
    check_marks(&geometry, released, durable, Lsn(marks.tail)).map_err(OpenError::Marks)?;
    let begin = geometry.segment_of(released);
    let end = (begin + u64::from(config.segments) - 1).max(geometry.segment_of(durable));
    let begin = left.first_key_value().map_or(begin, |(first, _)| begin.min(*first));
    let end = left.last_key_value().map_or(end, |(last, _)| end.max(*last));
    let corrupt = OpenError::Corrupt { from: released, to: durable };
    if end - begin >= ENTRIES_MAX as u64 {
        return Err(corrupt); // a header was forged
    }
    let missing = (begin..=end).filter(|number| !left.contains_key(number));
    let missing = missing.zip((0..).filter(|file| !taken.contains(file))).collect();
    let entries: Vec<Entry> = entries(begin, end, left, &missing).ok_or(corrupt)?;
    Ok(Catalogue {
        identity: region.identity(),
        segment_bytes,
        first: released,
        durable: released.align_up(BLOCK_BYTES),
        generations_below: generation.saturating_add(GENERATION_STEP),
        parity: config.parity,
        entries,
        holes: Vec::new(),
        cuts: Vec::new(),
    })
}
