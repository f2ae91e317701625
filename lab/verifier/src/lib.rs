//! A second reader of log directories, made from the description of their bytes
//! (`crates/log/FORMAT.md`) and from nothing else.
//!
//! What a log makes of a directory after a crash decides whether an acknowledged write survives.
//! Whoever tests that asks this one, too: a mistake has to be made twice, in two ways, to go
//! unnoticed.
//!
//! Promise: [`look`] tells every frame from the first that is needed to the end, how far the log is
//! proved to have been durable, and where it is damaged below that; it panics over no bytes.
//! Never: shares a line with the log, depends on anything, repairs, or reads format version 1.

mod catalogue;
mod check;
mod frame;
mod segments;

use std::collections::BTreeMap;

use catalogue::Catalogue;
pub use frame::{Frame, Kind};
use segments::Segments;

/// The files of a log's directory, by name.
pub type Directory = BTreeMap<String, Vec<u8>>;

/// What a directory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The first position that is needed: of the catalogue, or of the newest mark.
    pub first: u64,
    /// The first position without a whole frame.
    pub end: u64,
    /// Everything below was on the device at some time.
    pub proved: u64,
    /// Every frame below `end`, pads included, in order.
    pub frames: Vec<Frame>,
}

impl Found {
    /// Where what was durable is damaged, if it is.
    #[must_use]
    pub fn damaged_at(&self) -> Option<u64> {
        (self.proved > self.end).then_some(self.end)
    }

    /// What users put into the log and may still need, in order.
    pub fn data(&self) -> impl Iterator<Item = &Frame> {
        let is_needed = |frame: &&Frame| frame.kind.is_of_users() && frame.lsn >= self.first;
        self.frames.iter().filter(is_needed)
    }
}

/// Reads a directory.
///
/// # Errors
/// A sentence, if there is no catalogue that is whole, or it is of a version that is not read.
pub fn look(directory: &Directory) -> Result<Found, String> {
    let catalogue = Catalogue::newest(directory)?;
    let segments = Segments::new(directory, &catalogue);
    let (mut at, mut generation) = (catalogue.first, 0);
    let mut found = Found {
        first: catalogue.first,
        end: catalogue.first,
        proved: catalogue.durable,
        frames: Vec::new(),
    };
    loop {
        at = segments.behind_gap(at);
        let Some(frame) = segments.frame_at(at, generation) else { break };
        (at, generation) = (frame.end, frame.generation);
        found.proved = found.proved.max(frame.durable).max(segments.span_start(frame.lsn));
        if let Some(released) = frame.released() {
            found.first = found.first.max(released);
        }
        found.frames.push(frame);
    }
    found.end = at;
    found.proved = found.proved.max(segments.proved_behind(at, generation));
    Ok(found)
}
