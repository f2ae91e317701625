//! What a backup says of itself.
//!
//! Byte table: FORMAT.md, "Manifest of a backup".
//!
//! Promise: there is one manifest or its successor at every moment, also over a power cut.
//! Never: looks at what it speaks of.

use std::io;
use std::path::Path;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenHow};

use crate::error::RestoreError;
use crate::stream::rsn::Rsn;
use crate::stream::tag::Tag;

/// The file that says that there is a backup.
const NAME: &str = "manifest";
/// Its successor, until it is whole.
const NAME_NEW: &str = "manifest.new";
const MAGIC: [u8; 8] = *b"hold-bak";
/// The version of manifests that this program reads and writes.
const VERSION: u16 = 1;
const BYTES: usize = 48;

/// What a backup says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Each page has all of its records before this place.
    pub begin: Rsn,
    /// Where the records end.
    pub end: Rsn,
    /// No page has a record here or behind it: what the backup can be restored to begins here.
    pub newest: Rsn,
}

impl Manifest {
    /// The manifest in the directory that `files` has, if there is one.
    pub(crate) fn read(files: &dyn Files, tag: Tag) -> Result<Option<Manifest>, RestoreError> {
        let file = match files.open(Path::new(NAME), OpenHow::default()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut bytes = [0; BYTES];
        if file.read_full_at(&mut bytes, 0)? < BYTES || bytes[..8] != MAGIC {
            return Err(RestoreError::Manifest);
        }
        if check_of(&bytes, tag).to_le_bytes() != bytes[8..12] {
            return Err(RestoreError::Manifest);
        }
        match u16::from_le_bytes([bytes[12], bytes[13]]) {
            VERSION => {}
            found => return Err(RestoreError::OtherVersion { found, known: VERSION }),
        }
        let [begin, end, newest] = [16, 24, 32].map(|at| {
            Rsn(u64::from_le_bytes(bytes[at..at + 8].try_into().expect("it was cut so")))
        });
        Ok(Some(Manifest { begin, end, newest }))
    }

    /// Writes it, in the place of the one that is there; it survives a power cut when this returns.
    pub(crate) fn write(self, files: &dyn Files, tag: Tag) -> io::Result<()> {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[12..14].copy_from_slice(&VERSION.to_le_bytes());
        for (at, rsn) in [(16, self.begin), (24, self.end), (32, self.newest)] {
            bytes[at..at + 8].copy_from_slice(&rsn.get().to_le_bytes());
        }
        let check = check_of(&bytes, tag);
        bytes[8..12].copy_from_slice(&check.to_le_bytes());
        let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
        let file = files.open(Path::new(NAME_NEW), how)?;
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        files.rename(Path::new(NAME_NEW), Path::new(NAME))?;
        files.sync_dir(Path::new(""))
    }
}

fn check_of(bytes: &[u8; BYTES], tag: Tag) -> u32 {
    crc32c(tag.get(), &bytes[12..])
}
