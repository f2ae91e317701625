//! Entries of the roster that the region has no room for: a file beside the orphans, at home.
//!
//! It is never synced. It has to outlive the process, which the page cache does, and a machine that
//! starts anew has a kernel that knows no numbers.
//!
//! Promise: what was appended is read back, up to where it was said to end.
//! Never: says what counts. The region does, by a number and a length.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenFile, OpenHow};

use crate::home::space::{Cost, OwnRoom};
use crate::names::paths::to_path;
use crate::own::ORPHANS_NAME;

/// Length and check before each entry.
const HEAD_BYTES: usize = 8;
/// No entry is longer: a name and some numbers.
const ENTRY_BYTES_MAX: usize = 4096;
/// Bytes written at once.
const BATCH_BYTES: usize = 1 << 20;

/// One file of entries.
pub(crate) struct Spill {
    /// Its number, by which the region names it.
    pub(crate) number: u64,
    /// How long it is, as far as it counts.
    pub(crate) bytes: u64,
    file: Arc<dyn OpenFile>,
}

impl Spill {
    /// An empty one.
    pub(crate) fn create(room: OwnRoom<'_>, number: u64) -> io::Result<Spill> {
        let file = room.spend(Cost::of_node(room.gate.unit), |home| {
            crate::own::make(home)?;
            let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
            home.open(&path(number), how)
        })?;
        file.set_len(0)?;
        Ok(Spill { number, bytes: 0, file })
    }

    /// One that an earlier process wrote, up to where it counts.
    pub(crate) fn adopt(home: &dyn Files, number: u64, bytes: u64) -> io::Result<Spill> {
        let file = home.open(&path(number), OpenHow { write: true, ..OpenHow::default() })?;
        Ok(Spill { number, bytes, file })
    }

    /// Adds entries. What an append that failed has left behind the end does not count.
    pub(crate) fn append(
        &mut self,
        room: OwnRoom<'_>,
        entries: impl Iterator<Item = Vec<u8>>,
    ) -> io::Result<()> {
        let (mut end, mut batch) = (self.bytes, Vec::new());
        for entry in entries {
            batch.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            batch.extend_from_slice(&check(self.number, &entry).to_le_bytes());
            batch.extend_from_slice(&entry);
            if batch.len() >= BATCH_BYTES {
                end = self.write(room, &batch, end)?;
                batch.clear();
            }
        }
        self.bytes = self.write(room, &batch, end)?;
        Ok(())
    }

    /// Returns where the bytes end.
    fn write(&self, room: OwnRoom<'_>, bytes: &[u8], at: u64) -> io::Result<u64> {
        let cost = Cost::of_blocks(bytes.len() as u64, room.gate.unit);
        room.spend(cost, |_| self.file.write_all_at(bytes, at))?;
        Ok(at + bytes.len() as u64)
    }

    /// The first `bytes` of the file of that number, entry by entry, up to one that is damaged: a
    /// region that outlived the machine may name a file that did not.
    pub(crate) fn read(home: &dyn Files, number: u64, bytes: u64) -> io::Result<Vec<Vec<u8>>> {
        let file = home.open(&path(number), OpenHow::default())?;
        let there = file.metadata()?.size_bytes.min(bytes);
        let mut all = vec![0; usize::try_from(there).map_err(io::Error::other)?];
        let got = file.read_full_at(&mut all, 0)?;
        let (mut rest, mut entries) = (&all[..got], Vec::new());
        while let Some((entry, behind)) = first(number, rest) {
            entries.push(entry.to_vec());
            rest = behind;
        }
        Ok(entries)
    }

    /// The file of that number is needed no more. One that stays goes when the volume is detached.
    pub(crate) fn remove(home: &dyn Files, number: u64) {
        let _ = home.remove_file(&path(number));
    }
}

/// The entry that the bytes begin with, and those behind it.
fn first(number: u64, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let wanted = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
    let rest = bytes.get(HEAD_BYTES..).filter(|_| length <= ENTRY_BYTES_MAX)?;
    let (entry, behind) = rest.split_at_checked(length)?;
    (check(number, entry) == wanted).then_some((entry, behind))
}

/// Seeded by the number, so that what another file left is no entry of this one.
fn check(number: u64, entry: &[u8]) -> u32 {
    crc32c(crc32c(0, &number.to_le_bytes()), entry)
}

fn path(number: u64) -> PathBuf {
    let mut path = ORPHANS_NAME.to_vec();
    path.extend_from_slice(format!("/roster-{number}").as_bytes());
    to_path(path)
}

#[cfg(test)]
mod tests;
