//! The two files that hold the catalogue.
//!
//! They are written in place, one after the other, so a replacement needs no room on a full disk.
//! Each writing has a number, and the next one is begun only when the one before is durable: so the
//! file with the lower number is on the device, and the other is written first the next time. What
//! the higher number says is the catalogue, of those that are of this log (`whose`). It is acted
//! upon only when both say it.
//!
//! Promise: whatever happens while it is replaced, an open finds the catalogue that was or the one
//! that was to be, whole, in one file at least; if nothing happens, in both.
//! Never: writes a catalogue that no open takes.

use std::io;
use std::path::Path;

use holdfast_core::frame::BLOCK_BYTES;
use holdfast_io::{Files, Kind, OpenHow};

use super::{
    CATALOGUE, CUTS_MAX, Catalogue, ENTRIES_MAX, ENTRY_BYTES, Fault, HEAD_BYTES, HOLE_BYTES,
    HOLES_MAX, VERSION,
};
use crate::error::{FileFault, OpenError};
use crate::format::whose::{Identity, is_backed, majority};
use crate::outcome::Spoilt;
use crate::segments::segment::used_segment;

/// Name of the other file.
pub(crate) const COPY: &str = "catalogue.copy";
/// What earlier versions left of a replacement that was cut short.
pub(crate) const CATALOGUE_NEW: &str = "catalogue.new";

/// The files by number; of a new log, the first is written first.
const NAMES: [&str; 2] = [COPY, CATALOGUE];
/// Longest file, with what is kept free in it.
const BYTES_MAX: usize = HEAD_BYTES
    + ENTRIES_MAX * ENTRY_BYTES
    + (HOLES_MAX + CUTS_MAX + 1) * HOLE_BYTES
    + 2 * BLOCK_BYTES as usize;

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
    /// What was wrong with each when they were loaded.
    spoilt: [Option<FileFault>; 2],
}

impl Copies {
    /// Those of a log that is being made.
    pub(crate) fn new() -> Copies {
        Copies { sequence: 0, last: 0, named: [false; 2], settled: false, spoilt: [None; 2] }
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

    /// What was wrong with one of them when they were loaded.
    pub(crate) fn spoilt(&self) -> Vec<Spoilt> {
        let spoilt = |(name, fault): (&str, Option<FileFault>)| {
            fault.map(|fault| Spoilt { name: name.to_owned(), fault })
        };
        NAMES.into_iter().zip(self.spoilt).filter_map(spoilt).collect()
    }

    /// Whether what was loaded, or written last, can be acted upon.
    pub(crate) fn are_settled(&self) -> bool {
        self.settled
    }
}

impl Catalogue {
    /// Reads and checks the catalogue in the root of `files`.
    pub(crate) fn load(files: &dyn Files) -> Result<Catalogue, OpenError> {
        load(files).map(|(catalogue, _)| catalogue)
    }
}

/// The catalogue in the root of `files`, and how it is to be replaced.
pub(crate) fn load(files: &dyn Files) -> Result<(Catalogue, Copies), OpenError> {
    let mut before = read_both(files);
    loop {
        let (believed, foreign) = believed(files, &before).map_err(OpenError::Io)?;
        match (chosen(files, &before, believed), foreign) {
            (Some(found), _) => return Ok(found),
            (None, Some(slot)) => {
                let (name, fault) = (NAMES[slot].to_owned(), FileFault::Foreign);
                return Err(OpenError::File { name, fault });
            }
            // Its owner may have been writing it. What is the same twice is damaged.
            (None, None) => {
                let again = read_both(files);
                if said(&again) == said(&before) {
                    return Err(refusal(files, again));
                }
                before = again;
            }
        }
    }
}

/// Which log the directory is, also where no catalogue can be believed.
pub(crate) fn log_of(files: &dyn Files) -> io::Result<Option<Identity>> {
    match load(files) {
        Ok((catalogue, _)) => Ok(Some(catalogue.identity)),
        Err(_) => voted(files),
    }
}

/// Which log most files are of.
pub(crate) fn voted(files: &dyn Files) -> io::Result<Option<Identity>> {
    majority(files, &identities(&whole(&read_both(files))))
}

type Read = [io::Result<Vec<u8>>; 2];
type Whole = [Option<(Catalogue, u64)>; 2];

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

fn whole(read: &Read) -> Whole {
    read.each_ref().map(|bytes| bytes.as_ref().ok().and_then(|bytes| decode(bytes).ok()))
}

fn identities(whole: &Whole) -> Vec<Identity> {
    whole.iter().flatten().map(|(catalogue, _)| catalogue.identity).collect()
}

/// Those that are whole and of this log, and one that is of another.
fn believed(files: &dyn Files, read: &Read) -> io::Result<(Whole, Option<usize>)> {
    let mut whole = whole(read);
    let said = identities(&whole);
    let backed = || whole.iter().flatten().any(|(catalogue, _)| is_backed(files, catalogue));
    if said.is_empty() || (said.iter().all(|it| *it == said[0]) && backed()) {
        return Ok((whole, None));
    }
    let (log, mut foreign) = (majority(files, &said)?, None);
    for (slot, whole) in whole.iter_mut().enumerate() {
        if whole.as_ref().is_some_and(|(catalogue, _)| Some(catalogue.identity) != log) {
            (*whole, foreign) = (None, Some(slot));
        }
    }
    Ok((whole, foreign))
}

/// The newer one of those that are believed. The other, or one that is not whole, is written first.
fn chosen(files: &dyn Files, read: &Read, believed: Whole) -> Option<(Catalogue, Copies)> {
    let sequences = believed.each_ref().map(|it| it.as_ref().map(|(_, sequence)| *sequence));
    let newer = usize::from(sequences[1] > sequences[0]);
    let sequence = sequences[newer]?;
    let last = if sequences[1 - newer].is_none() { 1 - newer } else { newer };
    let mut spoilt = [None; 2];
    // An earlier version knew of one file only.
    if sequences[1 - newer].is_none() && sequence > 0 {
        spoilt[1 - newer] = Some(fault_of(files, 1 - newer, &read[1 - newer]));
    }
    let copies = Copies { sequence, last, named: [false; 2], settled: false, spoilt };
    let [copy, catalogue] = believed;
    let (catalogue, _) = if newer == 1 { catalogue? } else { copy? };
    Some((catalogue, copies))
}

/// What is wrong with a file that is not believed.
fn fault_of(files: &dyn Files, slot: usize, read: &io::Result<Vec<u8>>) -> FileFault {
    match read.as_deref().map(decode) {
        Ok(Ok(_)) => FileFault::Foreign,
        Ok(Err(Fault::File(fault))) => fault,
        Ok(Err(Fault::Version { .. })) => FileFault::Contents,
        Err(error) if error.kind() == io::ErrorKind::NotFound => FileFault::Missing,
        Err(_) => match files.metadata(Path::new(NAMES[slot])) {
            Ok(found) if found.kind != Kind::File => FileFault::NotAFile,
            _ => FileFault::Unreadable,
        },
    }
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
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            match fault_of(files, 1, &Err(error.kind().into())) {
                FileFault::NotAFile => file(FileFault::NotAFile),
                _ => OpenError::Io(error),
            }
        }
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

/// Writes a file over, and syncs it. One that grows gets room for more, which it keeps. There is
/// always room for the next cut: it is recorded when it cannot be taken back.
fn write(files: &dyn Files, name: &str, mut bytes: Vec<u8>) -> io::Result<()> {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(Path::new(name), how)?;
    if file.metadata()?.size_bytes < (bytes.len() + 2 * HOLE_BYTES) as u64 {
        let with_room = bytes.len() + BLOCK_BYTES as usize;
        bytes.resize(with_room.next_multiple_of(BLOCK_BYTES as usize), 0);
    }
    assert!(bytes.len() <= BYTES_MAX, "what no open takes is not written");
    file.write_all_at(&bytes, 0)?;
    file.sync_data()
}
