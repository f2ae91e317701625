//! The segments of a log some of whose files are damaged or gone, for a repair.
//!
//! Every segment says which log it is of and which stretch of it it holds, in its header and in
//! each of its frames. So the catalogue can be made anew. What it alone knows is found out in
//! another way: where the log begins by its marks, how far it was durable by its watermarks, and
//! which generations were used by the highest that is to be seen.
//!
//! Promise: a segment that is missing, short, or shadowed by an older copy costs what it held; what
//! the catalogue says is believed where the segments do not contradict it.
//! Never: writes; takes a file of another log.

use std::collections::BTreeMap;
use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::{BLOCK_BYTES, Sealer, decode};
use holdfast_io::Files;
use holdfast_io::checksum::crc32c;

use crate::config::Parity;
use crate::error::{FileFault, OpenError};
use crate::format::buffer::Buffer;
use crate::format::catalogue::copies::{self, Copies};
use crate::format::catalogue::{CATALOGUE, Catalogue, ENTRIES_MAX, Entry, FILES_MAX};
use crate::format::shape::Shape;
use crate::format::whose::Identity;
use crate::open::again::Again;
use crate::open::create::label_of;
use crate::open::load::load_table;
use crate::segments::cut::Cut;
use crate::segments::segment::{
    Access, Segment, SegmentHeader, file_number, header_of, segment_names,
};
use crate::segments::{Slot, Table};

/// How far above the highest generation that is to be seen the next one lies: some that left no
/// frame may have been used.
const GENERATIONS_UNSEEN: u32 = 1 << 12;

/// One segment file, as it says itself.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) file: u32,
    pub(crate) header: SegmentHeader,
}

/// The log's table, and whether it had to be made of what the segments say.
pub(crate) fn salvage(files: &dyn Files) -> Result<(Table, bool), OpenError> {
    match load_table(files, Access::Read) {
        Err(OpenError::File { .. } | OpenError::MissingSegment { .. } | OpenError::Io(_)) => {
            rebuild(files).map(|table| (table, true))
        }
        table => table.map(|table| (table, false)),
    }
}

fn rebuild(files: &dyn Files) -> Result<Table, OpenError> {
    let log = copies::voted(files).map_err(OpenError::Io)?;
    let known = copies::load(files).ok().map(|(catalogue, _)| catalogue);
    let known = known.filter(|known| Some(known.identity) == log);
    let pieces = pieces(files, log).map_err(OpenError::Io)?;
    let missing = || OpenError::File { name: CATALOGUE.to_owned(), fault: FileFault::Missing };
    let catalogue = match known {
        Some(known) => extended(known, &pieces),
        None => made_of(files, &pieces).map_err(OpenError::Io)?,
    };
    let catalogue = catalogue.filter(Catalogue::is_sensible).ok_or_else(missing)?;
    let slots = catalogue.entries.iter().map(|entry| slot(files, *entry, catalogue.shape()));
    let slots = slots.collect::<io::Result<Vec<_>>>().map_err(OpenError::Io)?;
    // A cut that cannot be read was not told to be made.
    let cut = Cut::load(files, &catalogue).ok().flatten();
    let catalogue = catalogue.with(cut.as_ref());
    let again = Again::load(files, &catalogue).ok().flatten();
    let label = label_of(files).map_err(OpenError::Io)?;
    let (copies, half_made) = (Copies::new(), Vec::new());
    let (absent, too_long) = (None, Vec::new());
    Ok(Table { catalogue, copies, slots, label, half_made, cut, again, absent, too_long })
}

/// What is missing of a file counts as zeros: nothing that was written.
fn slot(files: &dyn Files, entry: Entry, shape: Shape) -> io::Result<Slot> {
    Ok(Slot { entry, segment: Segment::what_is_left(files, entry.file, shape)?, ready: true })
}

/// Every segment file of the log, the newest for each number.
pub(crate) fn pieces(files: &dyn Files, log: Option<Identity>) -> io::Result<BTreeMap<u64, Piece>> {
    let mut found: Vec<Piece> = Vec::new();
    for name in segment_names(files)? {
        let Some(file) = file_number(&name) else { continue };
        if let Ok(Ok((header, _))) = header_of(files, &name) {
            found.push(Piece { file, header });
        }
    }
    found.retain(|piece| Some(piece.header.identity) == log);
    if let Some(base) = found.first().map(|piece| piece.header) {
        for name in segment_names(files)? {
            let Some(file) = file_number(&name) else { continue };
            if found.iter().all(|piece| piece.file != file)
                && let Some(header) = header_of_frames(files, &name, file, base)?
            {
                found.push(Piece { file, header });
            }
        }
    }
    let mut pieces: BTreeMap<u64, Piece> = BTreeMap::new();
    for piece in found {
        let newer = |old: &Piece| old.header.generation >= piece.header.generation;
        if !pieces.get(&piece.header.number).is_some_and(newer) {
            pieces.insert(piece.header.number, piece);
        }
    }
    Ok(pieces)
}

/// What the first frame says of a file whose header is damaged.
fn header_of_frames(
    files: &dyn Files,
    name: &str,
    file: u32,
    base: SegmentHeader,
) -> io::Result<Option<SegmentHeader>> {
    let SegmentHeader { identity, segment_bytes, .. } = base;
    let shape = Shape { segment_bytes, parity: Parity::None };
    let mut block = Buffer::zeroed(BLOCK_BYTES as usize);
    let segment = Segment::what_is_left(files, file, shape)?;
    segment.salvage(Lsn::ZERO, block.bytes_mut());
    let head = block.bytes().first_chunk().expect("a block is longer than a header");
    let frame = decode(&Sealer::new(&identity, crc32c), head).ok();
    debug_assert_eq!(file_number(name), Some(file));
    Ok(frame.filter(|frame| frame.lsn.is_aligned(segment_bytes)).map(|frame| SegmentHeader {
        generation: frame.generation,
        number: frame.lsn.get() / segment_bytes,
        ..base
    }))
}

/// The catalogue with the files where they are; what it lists and nobody has stays listed.
fn extended(mut known: Catalogue, pieces: &BTreeMap<u64, Piece>) -> Option<Catalogue> {
    let first = known.entries.first()?.number;
    let listed = known.entries.last()?.number;
    let last = pieces.keys().next_back().map_or(listed, |last| listed.max(*last));
    let generation = pieces.values().map(|piece| piece.header.generation).max().unwrap_or(0);
    known.generations_below = known.generations_below.max(generation.saturating_add(1));
    let old: BTreeMap<u64, u32> = known.entries.iter().map(|e| (e.number, e.file)).collect();
    known.entries = entries(first, last, pieces, &old)?;
    Some(known)
}

/// A catalogue of what the segments say.
fn made_of(files: &dyn Files, pieces: &BTreeMap<u64, Piece>) -> io::Result<Option<Catalogue>> {
    let (Some((first, piece)), Some((last, _))) =
        (pieces.first_key_value(), pieces.last_key_value())
    else {
        return Ok(None);
    };
    let SegmentHeader { identity, segment_bytes, .. } = piece.header;
    let generation = pieces.values().map(|piece| piece.header.generation).max().unwrap_or(0);
    let Some(start) = first.checked_mul(segment_bytes).map(Lsn) else { return Ok(None) };
    let Some(entries) = entries(*first, *last, pieces, &BTreeMap::new()) else { return Ok(None) };
    let parity = parity_of(files, pieces, segment_bytes)?;
    Ok(Some(Catalogue {
        identity,
        segment_bytes,
        first: start,
        durable: start,
        generations_below: generation.saturating_add(GENERATIONS_UNSEEN),
        parity,
        entries,
        holes: Vec::new(),
        cuts: Vec::new(),
    }))
}

/// Files that hold more than frames hold groups. What has the length of one or the other tells it
/// before any that was cut short, or made longer.
pub(crate) fn parity_of(
    files: &dyn Files,
    pieces: &BTreeMap<u64, Piece>,
    segment_bytes: u64,
) -> io::Result<Parity> {
    let found = pieces.values().map(|piece| Segment::found_bytes(files, piece.file));
    let found: Vec<u64> = found.collect::<io::Result<_>>()?;
    let [bare, with_groups] = [Parity::None, Parity::TenPercent]
        .map(|parity| Shape { segment_bytes, parity }.file_bytes());
    let are_bare = found.contains(&bare) && !found.contains(&with_groups);
    match !are_bare && found.iter().any(|bytes| *bytes > bare) {
        true => Ok(Parity::TenPercent),
        false => Ok(Parity::None),
    }
}

/// An entry for each number. One that nobody has gets the file that was listed for it, or one that
/// is not there.
pub(crate) fn entries(
    first: u64,
    last: u64,
    pieces: &BTreeMap<u64, Piece>,
    listed: &BTreeMap<u64, u32>,
) -> Option<Vec<Entry>> {
    if last.checked_sub(first)? >= ENTRIES_MAX as u64 {
        return None;
    }
    let taken = |file: &u32| pieces.values().any(|piece| piece.file == *file);
    let mut spare = (0..FILES_MAX).rev().filter(|file| !taken(file));
    let entry = |number| {
        let own = pieces.get(&number).map(|piece| piece.file);
        let listed = listed.get(&number).copied().filter(|file| !taken(file));
        Some(Entry { file: own.or(listed).or_else(|| spare.next())?, number })
    };
    (first..=last).map(entry).collect()
}
