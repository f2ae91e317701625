//! Room beside a log for what is to be put aside: files that are as large as what may come.
//!
//! The log's disk may be full when the home refuses something. What is written then goes into a
//! file that was written before, and gets its name when it is whole and durable: no room is wanted.
//! Where the file system never writes in place, none can be kept.
//!
//! Promise: a name stands for what was there before or for all that is new.
//! Never: fails for want of room that is only to be kept.

use std::io;
use std::path::Path;

use holdfast_io::{Files, OpenHow};

/// The directory, beside the log.
pub(super) const DIRECTORY: &str = "aside";
/// For a note.
const NOTE_BYTES: usize = 4096;
/// For a record with the most data that a write has, and what belongs to both.
const RECORD_BYTES: usize = (1 << 20) + (64 << 10);
/// For what a cleaner is stuck at, for an order, and for a record.
pub(super) const STUCK: Room = Room { name: "aside/room-stuck", bytes: NOTE_BYTES };
pub(super) const ORDER: Room = Room { name: "aside/room-order", bytes: NOTE_BYTES };
pub(super) const RECORD: Room = Room { name: "aside/room-record", bytes: RECORD_BYTES };

/// A file that is kept for another.
pub(super) struct Room {
    name: &'static str,
    bytes: usize,
}

/// Keeps room beside the log for what may have to be put aside, as far as there is some.
pub fn keep_room_aside(log: &dyn Files) {
    for room in [STUCK, ORDER, RECORD] {
        // Whoever has no room now has none less than before.
        let _ = room.keep(log);
    }
}

impl Room {
    fn keep(&self, files: &dyn Files) -> io::Result<()> {
        let name = Path::new(self.name);
        let is_kept = |size| size == self.bytes as u64;
        if files.metadata(name).is_ok_and(|found| is_kept(found.size_bytes)) {
            return Ok(());
        }
        make_directory(files)?;
        let kept = write(files, name, &vec![0; self.bytes]);
        if kept.is_err() {
            let _ = files.remove_file(name);
        }
        kept.and_then(|()| files.sync_dir(Path::new(DIRECTORY)))
    }

    /// Makes a file, or replaces it, in the room that is kept for it, if there is some. It is
    /// durable but for its name.
    pub(super) fn fill(&self, files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() <= self.bytes && self.write_over(files, bytes).is_ok() {
            return files.rename(Path::new(self.name), path);
        }
        make_directory(files)?;
        write(files, path, bytes)
    }

    fn write_over(&self, files: &dyn Files, bytes: &[u8]) -> io::Result<()> {
        let how = OpenHow { write: true, ..OpenHow::default() };
        let file = files.open(Path::new(self.name), how)?;
        if file.metadata()?.size_bytes < bytes.len() as u64 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        file.write_all_at(bytes, 0)?;
        file.set_len(bytes.len() as u64)?;
        file.sync_data()
    }
}

fn make_directory(files: &dyn Files) -> io::Result<()> {
    match files.make_dir(Path::new(DIRECTORY), 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.and_then(|()| files.sync_dir(Path::new(""))),
    }
}

/// Writes a whole file, durably but for its name.
fn write(files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(path, how)?;
    file.set_len(bytes.len() as u64)?;
    file.write_all_at(bytes, 0)?;
    file.sync_data()
}
