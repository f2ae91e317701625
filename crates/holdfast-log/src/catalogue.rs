//! The catalogue: what belongs to the log. One small file.
//!
//! Byte table: FORMAT.md, "Catalogue".
//!
//! Promise: it is the old one or the new one, whole, whatever happens while it is replaced; a
//! segment file that is missing is noticed because it is named here.
//! Never: is touched on the way of a commit.

use std::io;
use std::path::Path;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenHow};

use crate::config::{Parity, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use crate::error::{FileFault, OpenError};
use crate::log::Stretch;
use crate::segment::Shape;

/// Name of the file.
pub(crate) const CATALOGUE: &str = "catalogue";
/// Name of its successor while it is written.
pub(crate) const CATALOGUE_NEW: &str = "catalogue.new";
/// The version this program reads and writes.
pub(crate) const VERSION: u32 = 1;

const MAGIC: u32 = 0x4346_4648;
const HEAD_BYTES: usize = 64;
const ENTRY_BYTES: usize = 16;
const HOLE_BYTES: usize = 16;
/// A log that lost this many stretches is to be repaired, not cut once more.
pub(crate) const HOLES_MAX: usize = 1024;
/// More than any ring could ever need; bounds what is read.
const ENTRIES_MAX: usize = 1 << 16;
/// No log is opened this often.
const GENERATIONS_MAX: u32 = 1 << 31;
/// A file's name has eight digits.
const FILES_MAX: u32 = 100_000_000;
/// No log grows this long, so no position in one overflows.
const LOG_BYTES_MAX: u64 = 1 << 62;

/// One segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Number in the file's name.
    pub(crate) file: u32,
    /// Which stretch of the log it holds: its first position divided by the segment's size.
    pub(crate) number: u64,
}

/// The contents of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Catalogue {
    /// Identity of the log.
    pub(crate) identity: [u8; 16],
    /// Bytes of frames in one segment.
    pub(crate) segment_bytes: u64,
    /// Nothing below is needed; a frame starts here.
    pub(crate) first: Lsn,
    /// A watermark, so that a lost end of the log is noticed.
    pub(crate) durable: Lsn,
    /// Every generation used so far is below.
    pub(crate) generations_below: u32,
    /// What the segments keep beside the frames.
    pub(crate) parity: Parity,
    /// In ascending, gapless order of number.
    pub(crate) entries: Vec<Entry>,
    /// Stretches that an open has cut out of the log, in ascending order; each ends with a span.
    pub(crate) holes: Vec<Stretch>,
}

impl Catalogue {
    /// Reads and checks the catalogue in the root of `files`.
    pub(crate) fn load(files: &dyn Files) -> Result<Catalogue, OpenError> {
        let file = match files.open(Path::new(CATALOGUE), OpenHow::default()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(OpenError::NoLog),
            Err(error) => return Err(OpenError::Io(error)),
        };
        let size_bytes = file.metadata().map_err(OpenError::Io)?.size_bytes;
        let most = (HEAD_BYTES + ENTRIES_MAX * ENTRY_BYTES + HOLES_MAX * HOLE_BYTES) as u64;
        if size_bytes > most {
            return Err(damaged(FileFault::Length { found: size_bytes }));
        }
        let mut bytes = vec![0u8; size_bytes as usize];
        let got = file.read_full_at(&mut bytes, 0).map_err(OpenError::Io)?;
        Catalogue::decode(&bytes[..got])
    }

    /// Makes this the catalogue: when it returns, it is, and survives a power cut.
    pub(crate) fn replace(&self, files: &dyn Files) -> io::Result<()> {
        let bytes = self.encode();
        let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
        let file = files.open(Path::new(CATALOGUE_NEW), how)?;
        file.set_len(bytes.len() as u64)?;
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        files.rename(Path::new(CATALOGUE_NEW), Path::new(CATALOGUE))?;
        files.sync_dir(Path::new(""))
    }

    /// The catalogue as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.entries.len() * ENTRY_BYTES);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.identity);
        bytes.extend_from_slice(&self.segment_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.first.get().to_le_bytes());
        bytes.extend_from_slice(&self.durable.get().to_le_bytes());
        bytes.extend_from_slice(&self.generations_below.to_le_bytes());
        bytes.extend_from_slice(&(self.parity as u16).to_le_bytes());
        bytes.extend_from_slice(&(self.holes.len() as u16).to_le_bytes());
        for entry in &self.entries {
            bytes.extend_from_slice(&entry.file.to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&entry.number.to_le_bytes());
        }
        for hole in &self.holes {
            bytes.extend_from_slice(&hole.from.get().to_le_bytes());
            bytes.extend_from_slice(&hole.to.get().to_le_bytes());
        }
        let check = crc32c(0, &bytes[12..]);
        bytes[8..12].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Catalogue, OpenError> {
        if bytes.len() < HEAD_BYTES {
            return Err(damaged(FileFault::Length { found: bytes.len() as u64 }));
        }
        if u32_at(bytes, 0) != MAGIC {
            return Err(damaged(FileFault::Magic));
        }
        let version = u32_at(bytes, 4);
        if version != VERSION {
            return Err(OpenError::OtherVersion { found: version, known: VERSION });
        }
        if u32_at(bytes, 8) != crc32c(0, &bytes[12..]) {
            return Err(damaged(FileFault::Check));
        }
        let (entries, holes) = (u32_at(bytes, 12) as usize, u32_at(bytes, 60) >> 16);
        let holes_at = entries.saturating_mul(ENTRY_BYTES).saturating_add(HEAD_BYTES);
        let listed = holes_at.saturating_add(holes as usize * HOLE_BYTES) == bytes.len();
        let Some(parity) = parity(u32_at(bytes, 60) & 0xFFFF).filter(|_| listed) else {
            return Err(damaged(FileFault::Contents));
        };
        let catalogue = Catalogue {
            identity: array_at(bytes, 16),
            segment_bytes: u64_at(bytes, 32),
            first: Lsn(u64_at(bytes, 40)),
            durable: Lsn(u64_at(bytes, 48)),
            generations_below: u32_at(bytes, 56),
            parity,
            entries: records(&bytes[HEAD_BYTES..holes_at], entry),
            holes: records(&bytes[holes_at..], hole),
        };
        if !catalogue.is_sensible() {
            return Err(damaged(FileFault::Contents));
        }
        Ok(catalogue)
    }

    fn is_sensible(&self) -> bool {
        let sizes = SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX;
        self.segment_bytes.is_power_of_two()
            && sizes.contains(&self.segment_bytes)
            && self.first <= self.durable
            && self.durable.is_aligned(BLOCK_BYTES)
            && self.first.is_aligned(8)
            && self
                .entries
                .windows(2)
                .all(|two| two[0].number.checked_add(1) == Some(two[1].number))
            && self.covers(self.first)
            && self.generations_below < GENERATIONS_MAX
            && self.entries.iter().all(|entry| entry.file < FILES_MAX)
            && self
                .entries
                .last()
                .is_some_and(|last| last.number < LOG_BYTES_MAX / self.segment_bytes)
            && self.holes.iter().all(|hole| hole.from < hole.to)
            && self.holes.windows(2).all(|two| two[0].to <= two[1].from)
    }

    /// What each segment file is like.
    pub(crate) fn shape(&self) -> Shape {
        Shape { segment_bytes: self.segment_bytes, parity: self.parity }
    }

    /// Where the log goes on, if this was cut out of it.
    pub(crate) fn behind_hole(&self, lsn: Lsn) -> Option<Lsn> {
        behind_hole(&self.holes, lsn)
    }

    fn covers(&self, lsn: Lsn) -> bool {
        let number = lsn.get() / self.segment_bytes;
        self.entries.iter().any(|entry| entry.number == number)
    }
}

/// Records of a length, all present.
fn records<T, const BYTES: usize>(bytes: &[u8], of: fn(&[u8; BYTES]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(of).collect()
}

fn entry(bytes: &[u8; ENTRY_BYTES]) -> Entry {
    Entry { file: u32_at(bytes, 0), number: u64_at(bytes, 8) }
}

fn hole(bytes: &[u8; HOLE_BYTES]) -> Stretch {
    Stretch { from: Lsn(u64_at(bytes, 0)), to: Lsn(u64_at(bytes, 8)) }
}

/// Where a log with these holes goes on, if this position lies in one.
pub(crate) fn behind_hole(holes: &[Stretch], lsn: Lsn) -> Option<Lsn> {
    holes.iter().find(|hole| hole.from <= lsn && lsn < hole.to).map(|hole| hole.to)
}

fn parity(number: u32) -> Option<Parity> {
    [Parity::None, Parity::TenPercent].into_iter().find(|parity| *parity as u32 == number)
}

fn damaged(fault: FileFault) -> OpenError {
    OpenError::File { name: CATALOGUE.to_owned(), fault }
}

/// `N` bytes at `at`; the caller has checked the length.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes is N bytes long")
}

/// A little-endian u32 at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// A little-endian u64 at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}
