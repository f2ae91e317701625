//! Which log a directory is.
//!
//! Both catalogues say it, and each segment does in its header. What most of them say is so,
//! however new or however often written the others are; where as many say one as another, those
//! with frames in them are right.
//!
//! Promise: no file of another log is believed beside more of this one's.
//! Never: writes; reads further than a header while nothing contradicts another.

use std::collections::BTreeMap;
use std::io;

use holdfast_io::Files;

use crate::format::catalogue::Catalogue;
use crate::segments::segment::{header_of, is_used, segment_name, segment_names};

/// Which log something is of.
pub(crate) type Identity = [u8; 16];

/// How many files say the same, in the order in which that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Votes {
    /// Catalogues, and segments with frames.
    files: usize,
    /// Segments with frames.
    used: usize,
    /// Segments, with those that an attempt to make another log may have left.
    segments: usize,
}

/// The log that most files are of, with catalogues that say this.
pub(crate) fn majority(files: &dyn Files, catalogues: &[Identity]) -> io::Result<Option<Identity>> {
    let mut votes: BTreeMap<Identity, Votes> = BTreeMap::new();
    catalogues.iter().for_each(|said| votes.entry(*said).or_default().files += 1);
    for name in segment_names(files)? {
        let Ok(Ok((header, _))) = header_of(files, &name) else { continue };
        let votes = votes.entry(header.identity).or_default();
        votes.segments += 1;
        if is_used(files, &name).unwrap_or(true) {
            votes.used += 1;
            votes.files += 1;
        }
    }
    Ok(votes.into_iter().max_by_key(|(_, votes)| *votes).map(|(identity, _)| identity))
}

/// Whether the newest segment that a catalogue lists, and that can be read, is of its log.
pub(crate) fn is_backed(files: &dyn Files, catalogue: &Catalogue) -> bool {
    let header = |file| header_of(files, &segment_name(file)).ok()?.ok();
    let newest = catalogue.entries.iter().rev().find_map(|entry| header(entry.file));
    newest.is_none_or(|(header, _)| header.identity == catalogue.identity)
}
