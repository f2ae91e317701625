//! The file that says that a directory holds a store, or a backup of one, and whose it is.
//!
//! Byte table: FORMAT.md, "Store".
//!
//! Promise: it is there when everything else of a new one is, and never changes but to a newer
//! version; it is kept in two files, and one of them that is missing or damaged costs nothing; a
//! directory with something else in it is told from one that is free.
//! Never: makes anything but these.

use std::io;
use std::path::Path;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenHow};
use holdfast_pages::PAGE_BYTES;

use crate::face::directories::DIRECTORIES;

/// What the file is called.
pub(crate) struct Names {
    pub(crate) name: &'static str,
    /// The second file that says the same.
    pub(crate) copy: &'static str,
    /// Until one of the two takes the place of an older one, or of none. Not as while a store is
    /// made: that would be made anew over all there is, were the other lost.
    next: &'static str,
    /// Until everything else is there.
    begun: &'static str,
}

/// Of a store.
pub(crate) const STORE: Names =
    Names { name: "store", copy: "store.copy", next: "store-next", begun: "store-new" };
/// Of one that is made from a backup or an archive: cut short, it must not become an empty one.
pub(crate) const RESTORED: Names =
    Names { name: "store", copy: "store.copy", next: "store-next", begun: "restored-new" };
/// Of a backup.
pub(crate) const BACKUP: Names =
    Names { name: "backup", copy: "backup.copy", next: "backup-next", begun: "backup-new" };

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
    /// From the first of the two files; from the second, where that is missing or damaged.
    pub(crate) fn read(files: &dyn Files, names: &Names) -> Result<Header, NoHeader> {
        let fault = match Header::read_in(files, names.name) {
            Some(Err(NoHeader::Damaged)) => NoHeader::Damaged,
            Some(read) => return read,
            None => without(files, names),
        };
        match Header::read_in(files, names.copy) {
            Some(Ok(header)) => Ok(header),
            _ => Err(fault),
        }
    }

    /// Nothing, if there is no such file.
    fn read_in(files: &dyn Files, name: &str) -> Option<Result<Header, NoHeader>> {
        let mut bytes = [0; HEADER_BYTES];
        match read(files, name, &mut bytes) {
            Ok(()) => Some(Header::parse(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Err(NoHeader::Io(error))),
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
        self.write(files, names.begun)
    }

    /// Says so no more, on a directory where it was said and no more was made. If that is refused,
    /// it stands for nothing.
    pub(crate) fn take_back(files: &dyn Files, names: &Names) {
        let _stays = files.remove_file(Path::new(names.begun));
    }

    fn write(&self, files: &dyn Files, name: &str) -> io::Result<()> {
        let how = OpenHow { write: true, create_mode: Some(FILE_MODE), ..OpenHow::default() };
        let file = files.open(Path::new(name), how)?;
        file.write_all_at(&self.encode(), 0)?;
        file.sync_data()?;
        files.sync_dir(Path::new(""))
    }

    /// Says, of one of an older version, that it is of this one: before anything is put that older
    /// programs do not know. It survives a power cut when this returns. The second file waits for
    /// the next time where there is no room for it.
    pub(crate) fn renew(&self, files: &dyn Files, names: &Names) -> io::Result<()> {
        if !self.is_in(files, names.name) {
            self.replace(files, names, names.name)?;
        }
        match self.is_in(files, names.copy) {
            true => Ok(()),
            false => self.replace(files, names, names.copy).or_else(|error| match error.kind() {
                io::ErrorKind::StorageFull => Ok(()),
                _ => Err(error),
            }),
        }
    }

    fn is_in(&self, files: &dyn Files, name: &str) -> bool {
        let mut bytes = [0; HEADER_BYTES];
        read(files, name, &mut bytes).is_ok() && bytes == self.encode()
    }

    /// Says that it is there. It survives a power cut when this returns.
    pub(crate) fn finish(&self, files: &dyn Files, names: &Names) -> io::Result<()> {
        Header::take_place(files, names.begun, names.name)?;
        self.replace(files, names, names.copy)
    }

    fn replace(&self, files: &dyn Files, names: &Names, name: &str) -> io::Result<()> {
        self.write(files, names.next)?;
        Header::take_place(files, names.next, name)
    }

    fn take_place(files: &dyn Files, begun: &str, name: &str) -> io::Result<()> {
        files.rename(Path::new(begun), Path::new(name))?;
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
