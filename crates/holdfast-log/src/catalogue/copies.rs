//! The two files that hold the catalogue.
//!
//! They are written in place, one after the other, so a replacement needs no room on a full disk.
//! Each writing has a number, and the next one is begun only when the one before is durable: so the
//! file with the lower number is on the device, and the other is written first the next time. What
//! the higher number says is the catalogue. It is acted upon only when both say it.
//!
//! Promise: whatever happens while it is replaced, an open finds the catalogue that was or the one
//! that was to be, whole, in one file at least; if nothing happens, in both.
//! Never: writes a catalogue that no open takes.

use std::io;
use std::path::Path;

use holdfast_core::frame::BLOCK_BYTES;
use holdfast_io::{Files, OpenHow};

use super::{
    CATALOGUE, Catalogue, ENTRIES_MAX, ENTRY_BYTES, Fault, HEAD_BYTES, HOLE_BYTES, HOLES_MAX,
    VERSION,
};
use crate::create::used_segment;
use crate::error::{FileFault, OpenError};

/// Name of the other file.
pub(crate) const COPY: &str = "catalogue.copy";
/// What earlier versions left of a replacement that was cut short.
pub(crate) const CATALOGUE_NEW: &str = "catalogue.new";

/// The files by number; of a new log, the first is written first.
const NAMES: [&str; 2] = [COPY, CATALOGUE];
/// Longest file, with what is kept free in it.
const BYTES_MAX: usize =
    HEAD_BYTES + ENTRIES_MAX * ENTRY_BYTES + HOLES_MAX * HOLE_BYTES + 2 * BLOCK_BYTES as usize;

/// How the files are to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    /// Of the last writing.
    sequence: u64,
    /// The file of the last writing: the one that may not be durable.
    last: usize,
    /// Whether the name of each is known to be durable.
    named: [bool; 2],
    /// Whether both are known to say the same, durably.
    settled: bool,
}

impl Copies {
    /// Those of a log that is being made.
    pub(crate) fn new() -> Copies {
        Copies { sequence: 0, last: 0, named: [false; 2], settled: false }
    }

    /// Makes this the catalogue: when it returns, it is, and survives a power cut. If it fails, the
    /// one before is, or this one, neither of which an open refuses.
    ///
    /// # Panics
    /// If no open would take it.
    pub(crate) fn replace(&mut self, files: &dyn Files, catalogue: &Catalogue) -> io::Result<()> {
        assert!(catalogue.is_sensible(), "what no open takes is not written: {catalogue:?}");
        self.settled = false;
        for slot in [self.last, 1 - self.last] {
            (self.last, self.sequence) = (slot, self.sequence + 1);
            write(files, NAMES[slot], catalogue.encode(self.sequence))?;
            if !self.named[slot] {
                files.sync_dir(Path::new(""))?;
                self.named[slot] = true;
            }
        }
        self.settled = true;
        Ok(())
    }

    /// Whether what was loaded, or written last, can be acted upon.
    pub(crate) fn are_settled(&self) -> bool {
        self.settled
    }
}

/// The catalogue in the root of `files`, and how it is to be replaced.
pub(crate) fn load(files: &dyn Files) -> Result<(Catalogue, Copies), OpenError> {
    let mut before = read_both(files);
    loop {
        match chosen(&before) {
            Some(found) => return Ok(found),
            // Its owner may have been writing it. What is the same twice is damaged.
            None => {
                let again = read_both(files);
                if said(&again) == said(&before) {
                    return Err(refusal(files, again));
                }
                before = again;
            }
        }
    }
}

type Read = [io::Result<Vec<u8>>; 2];

fn read_both(files: &dyn Files) -> Read {
    NAMES.map(|name| read(files, name))
}

fn said(read: &Read) -> [Option<&[u8]>; 2] {
    read.each_ref().map(|bytes| bytes.as_deref().ok())
}

/// A file that is longer than any is cut short here, and refused for that.
fn read(files: &dyn Files, name: &str) -> io::Result<Vec<u8>> {
    let file = files.open(Path::new(name), OpenHow::default())?;
    let size_bytes = file.metadata()?.size_bytes.min(BYTES_MAX as u64 + 1);
    let mut bytes = vec![0; size_bytes as usize];
    let got = file.read_full_at(&mut bytes, 0)?;
    bytes.truncate(got);
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Result<(Catalogue, u64), Fault> {
    match bytes.len() > BYTES_MAX {
        true => Err(Fault::File(FileFault::Length { found: bytes.len() as u64 })),
        false => Catalogue::decode(bytes),
    }
}

/// The newer one of those that are whole. The other, or one that is not whole, is written first.
fn chosen(read: &Read) -> Option<(Catalogue, Copies)> {
    let found = read.each_ref().map(|bytes| bytes.as_ref().ok().and_then(|b| decode(b).ok()));
    let sequences = found.each_ref().map(|whole| whole.as_ref().map(|(_, sequence)| *sequence));
    let newer = usize::from(sequences[1] > sequences[0]);
    let sequence = sequences[newer]?;
    let last = if sequences[1 - newer].is_none() { 1 - newer } else { newer };
    let copies = Copies { sequence, last, named: [false; 2], settled: false };
    let [copy, catalogue] = found;
    let (catalogue, _) = if newer == 1 { catalogue? } else { copy? };
    Some((catalogue, copies))
}

/// Why there is no catalogue. A log that was used has segments that say so; one that is being made
/// has none, and its copy may be half there.
fn refusal(files: &dyn Files, [copy, catalogue]: Read) -> OpenError {
    let file = |fault| OpenError::File { name: CATALOGUE.to_owned(), fault };
    match catalogue {
        Ok(bytes) => match decode(&bytes) {
            Err(Fault::Version { found }) => OpenError::OtherVersion { found, known: VERSION },
            Err(Fault::File(fault)) => file(fault),
            Ok(_) => file(FileFault::Contents), // It is whole by now: look again.
        },
        Err(error) if error.kind() != io::ErrorKind::NotFound => OpenError::Io(error),
        Err(_) => match (copy, used_segment(files)) {
            (_, Err(error)) => OpenError::Io(error),
            (_, Ok(Some(_))) => file(FileFault::Missing),
            (Err(error), Ok(None)) if error.kind() != io::ErrorKind::NotFound => {
                OpenError::Io(error)
            }
            (_, Ok(None)) => OpenError::NoLog,
        },
    }
}

/// Writes a file over, and syncs it. One that grows gets room for more, which it keeps.
fn write(files: &dyn Files, name: &str, mut bytes: Vec<u8>) -> io::Result<()> {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(Path::new(name), how)?;
    if file.metadata()?.size_bytes < bytes.len() as u64 {
        let with_room = bytes.len() + BLOCK_BYTES as usize;
        bytes.resize(with_room.next_multiple_of(BLOCK_BYTES as usize), 0);
    }
    assert!(bytes.len() <= BYTES_MAX, "what no open takes is not written");
    file.write_all_at(&bytes, 0)?;
    file.sync_data()
}
