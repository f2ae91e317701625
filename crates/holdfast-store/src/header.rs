//! The file that says that a directory holds a store, or a backup of one, and whose it is.
//!
//! Byte table: FORMAT.md, "Store".
//!
//! Promise: it is there when everything else of a new one is, and never changes but to a newer
//! version; a directory with something else in it is told from one that is free.
//! Never: makes anything but these.

use std::io;
use std::path::Path;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenHow};
use holdfast_pages::PAGE_BYTES;

use crate::place::DIRECTORIES;

/// What the file is called.
pub(crate) struct Names {
    pub(crate) name: &'static str,
    /// Until everything else is there.
    begun: &'static str,
}

/// Of a store.
pub(crate) const STORE: Names = Names { name: "store", begun: "store-new" };
/// Of one that is made from a backup or an archive: cut short, it must not become an empty one.
pub(crate) const RESTORED: Names = Names { name: "store", begun: "restored-new" };
/// Of a backup.
pub(crate) const BACKUP: Names = Names { name: "backup", begun: "backup-new" };

/// "HFST".
const MAGIC: u32 = 0x5453_4648;
/// The version of stores that this program makes. It opens those of the ones before, too.
pub(crate) const VERSION: u16 = 3;
pub(crate) const HEADER_BYTES: usize = 64;
const FILE_MODE: u32 = 0o644;

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) identity: [u8; 16],
    /// Which of those that go on from the same records. The first one is 0.
    pub(crate) history: u64,
}

/// What there is in a directory instead.
#[derive(Debug)]
pub(crate) enum NoHeader {
    /// Nothing, or something whose making was cut short.
    Free,
    /// Files of somebody else, or of a store whose header is gone.
    Taken,
    /// A header that is damaged.
    Damaged,
    /// A header of another version.
    OtherVersion(u16),
    /// It cannot be read.
    Io(io::Error),
}

impl Header {
    pub(crate) fn read(files: &dyn Files, names: &Names) -> Result<Header, NoHeader> {
        let mut bytes = [0; HEADER_BYTES];
        match read(files, names.name, &mut bytes) {
            Ok(()) => Header::parse(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(without(files, names)),
            Err(error) => Err(NoHeader::Io(error)),
        }
    }

    fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Header, NoHeader> {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        if word(0) != crc32c(MAGIC, &bytes[4..]) || word(4) != MAGIC {
            return Err(NoHeader::Damaged);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if !(1..=VERSION).contains(&version) || word(12) != PAGE_BYTES as u32 {
            return Err(NoHeader::OtherVersion(version));
        }
        let history = u64::from_le_bytes(std::array::from_fn(|byte| bytes[32 + byte]));
        Ok(Header { identity: std::array::from_fn(|byte| bytes[16 + byte]), history })
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[4..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(PAGE_BYTES as u32).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.identity);
        bytes[32..40].copy_from_slice(&self.history.to_le_bytes());
        let check = crc32c(MAGIC, &bytes[4..]);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Says, on a free directory, that something is being made there.
    pub(crate) fn begin(&self, files: &dyn Files, names: &Names) -> io::Result<()> {
        let how = OpenHow { write: true, create_mode: Some(FILE_MODE), ..OpenHow::default() };
        let file = files.open(Path::new(names.begun), how)?;
        file.write_all_at(&self.encode(), 0)?;
        file.sync_data()?;
        files.sync_dir(Path::new(""))
    }

    /// Says, of one of an older version, that it is of this one: before anything is put that older
    /// programs do not know. It survives a power cut when this returns.
    pub(crate) fn renew(&self, files: &dyn Files, names: &Names) -> io::Result<()> {
        let mut bytes = [0; HEADER_BYTES];
        read(files, names.name, &mut bytes)?;
        if bytes == self.encode() {
            return Ok(());
        }
        self.begin(files, names)?;
        Header::finish(files, names)
    }

    /// Says that it is there. It survives a power cut when this returns.
    pub(crate) fn finish(files: &dyn Files, names: &Names) -> io::Result<()> {
        files.rename(Path::new(names.begun), Path::new(names.name))?;
        files.sync_dir(Path::new(""))
    }
}

fn read(files: &dyn Files, name: &str, into: &mut [u8]) -> io::Result<()> {
    files.open(Path::new(name), OpenHow::default())?.read_full_at(into, 0).map(drop)
}

/// What a directory without a header is.
fn without(files: &dyn Files, names: &Names) -> NoHeader {
    let entries = match files.read_dir(Path::new("")) {
        Ok(entries) => entries,
        Err(error) => return NoHeader::Io(error),
    };
    let is = |name: &[u8], other: &str| name == other.as_bytes();
    let begun = entries.iter().any(|entry| is(&entry.name, names.begun));
    let known = |name: &[u8]| DIRECTORIES.iter().any(|directory| is(name, directory));
    let ours = entries.iter().all(|entry| known(&entry.name));
    if begun || ours { NoHeader::Free } else { NoHeader::Taken }
}

#[cfg(test)]
mod tests;
