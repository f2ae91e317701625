//! The files of a log, loaded: catalogue, segments, and what was to be finished.
//!
//! Promise: what is missing, of a wrong length, older or another log's is told by name; whoever has
//! a ring that may have it gets what is left.
//! Never: changes anything.

use holdfast_core::frame::Sealer;
use holdfast_core::recovery::Verdict as End;
use holdfast_io::Files;
use holdfast_io::checksum;

use crate::error::{FileFault, OpenError};
use crate::format::catalogue::{CATALOGUE, Catalogue, copies};
use crate::open::again::Again;
use crate::open::create::label_of;
use crate::open::found::OnDamage;
use crate::open::recovery::{scan, segments_alone, tail_start};
use crate::outcome::Spoilt;
use crate::read::spans::SpanReader;
use crate::segments::cut::Cut;
use crate::segments::segment::{Access, Segment, header_of, is_used, segment_name, segment_names};
use crate::segments::{Slot, Table};

/// How many opens share one write of the catalogue.
pub(crate) const GENERATION_STEP: u32 = 64;

/// Fails if a file is missing or has not its length: nothing else has what it had.
pub(crate) fn refuse_absent(table: &mut Table) -> Result<(), OpenError> {
    table.absent.take().map_or(Ok(()), Err)
}

/// Reads the catalogue and opens every segment it lists, all of which have to be there.
pub(crate) fn load_table(files: &dyn Files, access: Access) -> Result<Table, OpenError> {
    let mut table = load_what_is_left(files, access)?;
    refuse_needed(&mut table)?;
    Ok(table)
}

/// Fails if a file has not its length, or if one is missing that may have had something. A file is
/// used when the one before is full: where the log ends in front of that one, there was nothing,
/// and who wants to use the file makes it again. Where it ends in that one, a frame may be damaged
/// that looks like an end, and only what is missing would tell.
pub(crate) fn refuse_needed(table: &mut Table) -> Result<(), OpenError> {
    let absent = table.slots.iter().find(|slot| slot.segment.is_absent());
    let Some(number) = absent.map(|slot| slot.entry.number) else { return refuse_absent(table) };
    let mut absent = table.slots.iter().filter(|slot| slot.segment.is_absent());
    let are_missing = absent.all(|slot| slot.segment.is_missing());
    if are_missing && table.cut.is_none() && table.again.is_none() && ends_before(table, number)? {
        table.absent = None;
    }
    refuse_absent(table)
}

/// Whether the log ends in front of the segment before this one.
fn ends_before(table: &Table, number: u64) -> Result<bool, OpenError> {
    let geometry = segments_alone(&table.catalogue);
    let mut reader = SpanReader::salvaging(table, geometry);
    let sealer = Sealer::new(&table.catalogue.identity, checksum::chosen());
    let start = tail_start(&table.catalogue, geometry);
    let found = scan(&mut reader, &sealer, start, OnDamage::Stop, &mut |_| Ok(()))?;
    match found.verdict {
        End::Clean { end } | End::Torn { end } => Ok(geometry.segment_of(end) + 1 < number),
        End::Corrupt { .. } => Ok(false),
    }
}

/// [`load_table`], for who has a ring that may have what is missing.
pub(crate) fn load_what_is_left(files: &dyn Files, access: Access) -> Result<Table, OpenError> {
    let (mut catalogue, copies) = copies::load(files)?;
    let (mut slots, mut absent) = (Vec::with_capacity(catalogue.entries.len()), None);
    let mut too_long = Vec::new();
    for entry in &catalogue.entries {
        let opened = Segment::open(files, entry.file, catalogue.shape(), access)?;
        let (segment, fault) = opened;
        if let Some(OpenError::File { name, fault: fault @ FileFault::TooLong { .. } }) = &fault {
            too_long.push(Spoilt { name: name.clone(), fault: *fault });
        }
        absent = absent.or(fault);
        let name = segment_name(entry.file);
        let ready = match segment.header().map_err(OpenError::Io)? {
            Ok((header, _)) if header.identity != catalogue.identity => {
                return Err(foreign(files, &catalogue, name));
            }
            // The catalogue is always told first.
            Ok((header, _)) if header.number > entry.number => return Err(older()),
            Ok((header, _)) => header.number == entry.number && !segment.is_absent(),
            // Torn while it was recycled, or damaged: its frames speak for themselves, and the
            // header is written again before a drain uses the file.
            Err(_) => false,
        };
        slots.push(Slot { entry: *entry, segment, ready });
    }
    let half_made = unlisted(files, &catalogue, access)?;
    let cut = Cut::load(files, &catalogue)?;
    catalogue = catalogue.with(cut.as_ref());
    let again = Again::load(files, &catalogue)?;
    let label = label_of(files).map_err(OpenError::Io)?;
    Ok(Table { catalogue, copies, slots, label, half_made, cut, again, absent, too_long })
}

/// Which file is of another log, if a segment and a catalogue differ.
fn foreign(files: &dyn Files, catalogue: &Catalogue, segment: String) -> OpenError {
    let name = match copies::voted(files) {
        Ok(log) if log == Some(catalogue.identity) => segment,
        Ok(_) => CATALOGUE.to_owned(),
        Err(error) => return OpenError::Io(error),
    };
    OpenError::File { name, fault: FileFault::Foreign }
}

/// The files that are not listed, half made and empty, for who may remove them. One that has a
/// header was listed.
fn unlisted(
    files: &dyn Files,
    catalogue: &Catalogue,
    access: Access,
) -> Result<Vec<String>, OpenError> {
    let listed = |name: &str| catalogue.entries.iter().any(|e| segment_name(e.file) == name);
    let mut half_made = Vec::new();
    for name in segment_names(files).map_err(OpenError::Io)? {
        if listed(&name) {
            continue;
        }
        let header = header_of(files, &name).map_err(OpenError::Io)?;
        if header.is_ok_and(|(header, _)| header.identity == catalogue.identity) {
            return Err(older());
        }
        if access == Access::Write && !is_used(files, &name).map_err(OpenError::Io)? {
            half_made.push(name);
        }
    }
    Ok(half_made)
}

fn older() -> OpenError {
    OpenError::File { name: CATALOGUE.to_owned(), fault: FileFault::Older }
}

/// A region that was left over from before an open without it is not this log any more.
pub(crate) fn is_of_step(below: u32, last: u64) -> Result<(), OpenError> {
    let log = below.saturating_sub(GENERATION_STEP);
    match (u64::from(log)..u64::from(below)).contains(&last) {
        true => Ok(()),
        false => Err(OpenError::StaleRegion { region: last as u32, log }),
    }
}
