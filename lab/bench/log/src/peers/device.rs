//! What the device does by itself: the limits.
//!
//! Promise: the file is full of zeros, and synced, before anything is timed, so that no write
//! changes more than its own blocks.
//! Never: keeps a record; writes the same bytes for each set.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;

use super::{Durability, Kind, Peer, Terms, Unsynced, Writer};
use crate::Failure;
use crate::record::Format;
use crate::set::Set;

/// A block a set, past the page cache.
pub(super) const DIRECT: Kind =
    Kind { name: "device", open: open_direct, read: None, unsynced: Unsynced::Never };

/// The bare bytes of a set, through the page cache.
pub(super) const BUFFERED: Kind =
    Kind { name: "device-buffered", open: open_buffered, read: None, unsynced: Unsynced::Sets };

const BLOCK_BYTES: usize = 4096;

/// Bytes of the record as MessagePack,
const RECORD_BYTES: usize = 113;

/// and as JSON.
const JSON_RECORD_BYTES: usize = 305;

/// A block where `O_DIRECT` wants it.
#[repr(align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// A file of zeros that is written from one end to the other, and again.
struct Zeros {
    file: File,
    bytes: u64,
    at: AtomicU64,
    /// Whether a block is written, and durably, or the bytes alone.
    direct: bool,
    /// Whether the bytes are then synced.
    sync: bool,
}

struct Hand<'a> {
    zeros: &'a Zeros,
    block: Box<Block>,
}

fn open_direct(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    // Many more blocks than records, as each set takes a whole one.
    let bytes = terms.bytes.next_multiple_of(BLOCK_BYTES as u64);
    let flags = (OFlags::DIRECT | OFlags::DSYNC).bits() as i32;
    let file = OpenOptions::new().write(true).custom_flags(flags).open(zeros(folder, bytes)?)?;
    Ok(Box::new(Zeros { file, bytes, at: AtomicU64::new(0), direct: true, sync: false }))
}

fn open_buffered(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let bytes = terms.bytes;
    let file = OpenOptions::new().write(true).open(zeros(folder, bytes)?)?;
    let sync = terms.durability == Durability::Synced;
    Ok(Box::new(Zeros { file, bytes, at: AtomicU64::new(0), direct: false, sync }))
}

/// Makes the file.
fn zeros(folder: &Path, bytes: u64) -> Result<PathBuf, Failure> {
    const STEP: usize = 1 << 20;
    let path = folder.join("zeros");
    let mut file = File::create(&path)?;
    for _ in 0..bytes.div_ceil(STEP as u64) {
        file.write_all(&[0; STEP])?;
    }
    file.sync_all()?;
    Ok(path)
}

impl Zeros {
    /// The place of the next so many bytes.
    fn next(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        self.at.fetch_add(1, Ordering::Relaxed) % (self.bytes / bytes) * bytes
    }
}

impl Peer for Zeros {
    fn writer(&self) -> Box<dyn Writer + '_> {
        Box::new(Hand { zeros: self, block: Box::new(Block([1; BLOCK_BYTES])) })
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.file.sync_data()?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Writer for Hand<'_> {
    fn append(&mut self, set: &mut Set<'_>) -> Result<(), Failure> {
        let bytes = &self.block.0;
        if self.zeros.direct {
            self.zeros.file.write_all_at(bytes, self.zeros.next(BLOCK_BYTES))?;
            return Ok(());
        }
        let record = match set.format() {
            Format::MessagePack => RECORD_BYTES,
            Format::Json => JSON_RECORD_BYTES,
        };
        let bytes = &bytes[..set.records().len() * record];
        self.zeros.file.write_all_at(bytes, self.zeros.next(bytes.len()))?;
        if self.zeros.sync { Ok(self.zeros.file.sync_data()?) } else { Ok(()) }
    }
}
