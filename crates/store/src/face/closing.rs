//! Whether a store is closed: two small files, one of each opening and one of each close.
//!
//! Byte table: FORMAT.md, "Closed".
//!
//! Promise: only what the newest opening's own close wrote is believed, and only of the archive
//! that it speaks of. A file that is empty, torn, damaged, older, or another store's says nothing.
//! A log that does not reach to where it had got at the newest opening is an older copy.
//! Never: reads the archive or the log.

use std::io;
use std::path::Path;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Entropy, Files, OpenHow};
use holdfast_log::Lsn;
use holdfast_pages::Rsn;

use crate::face::header::Header;

/// Which opening is the newest; replaced before that opening puts anything.
const OPENED: &str = "opened";
/// Until it is complete, and between openings, so that there is room for it.
const OPENED_BEGUN: &str = "opened-new";
/// Which opening was closed, and where the archive ended then; gone while a store is open.
const CLOSED: &str = "closed";

/// "HFSO".
const MAGIC: u32 = 0x4F53_4648;
const VERSION: u16 = 2;
/// The version that says nothing of the log, which is read as well.
const VERSION_LOGLESS: u16 = 1;
pub(crate) const NOTE_BYTES: usize = 64;
const FILE_MODE: u32 = 0o644;

/// What either file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Whose it is.
    pub(crate) header: Header,
    /// No two openings in a row have the same.
    pub(crate) opening: u64,
    /// Where the archive ends, which has everything; none while the store is open.
    pub(crate) end: Option<Rsn>,
    /// What the log's device had when the store was opened, if the log is the store's own; else 0.
    pub(crate) log_end: Lsn,
}

impl Note {
    /// Notes that a store is not closed any more. That survives a power cut when this returns.
    pub(crate) fn open(
        files: &dyn Files,
        entropy: &dyn Entropy,
        header: Header,
        log_end: Lsn,
    ) -> io::Result<Note> {
        let mut drawn = [0; 8];
        entropy.fill(&mut drawn);
        let before = Note::read(files, OPENED)?.map_or(0, |note| note.opening);
        // Another one than before, wherever the numbers come from.
        let opening = before.wrapping_add(u64::from_le_bytes(drawn) | 1);
        let note = Note { header, opening, end: None, log_end };
        note.replace(files)?;
        match files.remove_file(Path::new(CLOSED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => files.sync_dir(Path::new("")).map(|()| note),
        }
    }

    /// Notes that the store is closed that was opened so, with everything in its archive, which
    /// ends here.
    pub(crate) fn close(self, files: &dyn Files, end: Rsn) -> io::Result<()> {
        Note { end: Some(end), ..self }.write(files, CLOSED)?;
        files.sync_dir(Path::new(""))
    }

    /// Where the log of this store ends at the earliest, as far as that is known.
    pub(crate) fn least_log_end(files: &dyn Files, header: Header) -> io::Result<Lsn> {
        let opened = Note::read(files, OPENED)?.filter(|note| note.header == header);
        Ok(opened.map_or(Lsn(0), |note| note.log_end))
    }

    /// Where the archive of this store ends if the store is closed.
    pub(crate) fn end_of_closed(files: &dyn Files, header: Header) -> io::Result<Option<Rsn>> {
        let (opened, closed) = (Note::read(files, OPENED)?, Note::read(files, CLOSED)?);
        let (Some(opened), Some(closed)) = (opened, closed) else { return Ok(None) };
        let is_its_close = closed.header == header && Note { end: None, ..closed } == opened;
        Ok(closed.end.filter(|_| is_its_close))
    }

    /// Makes this the note of the newest opening. The one before keeps its room, for the next:
    /// there may be none left on the device by then.
    fn replace(&self, files: &dyn Files) -> io::Result<()> {
        let (begun, opened) = (Path::new(OPENED_BEGUN), Path::new(OPENED));
        self.write(files, OPENED_BEGUN)?;
        // Not where the file system knows no such thing, or there was none before.
        if files.exchange(begun, opened).is_ok() {
            return Ok(());
        }
        files.rename(begun, opened)?;
        self.write(files, OPENED_BEGUN)
    }

    fn write(&self, files: &dyn Files, name: &str) -> io::Result<()> {
        let how = OpenHow { write: true, create_mode: Some(FILE_MODE), ..OpenHow::default() };
        let file = files.open(Path::new(name), how)?;
        file.write_all_at(&self.encode(), 0)?;
        file.sync_data()
    }

    /// None if it is not there, or is no such file.
    fn read(files: &dyn Files, name: &str) -> io::Result<Option<Note>> {
        let mut bytes = [0; NOTE_BYTES];
        let file = match files.open(Path::new(name), OpenHow::default()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        // What is missing of a short one is zeros, which its check is not.
        file.read_full_at(&mut bytes, 0)?;
        Ok(Note::parse(&bytes))
    }

    fn parse(bytes: &[u8; NOTE_BYTES]) -> Option<Note> {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let check = u32::from_le_bytes(std::array::from_fn(|byte| bytes[byte]));
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        let is_ours =
            bytes[4..8] == MAGIC.to_le_bytes() && matches!(version, VERSION | VERSION_LOGLESS);
        if check != crc32c(MAGIC, &bytes[4..]) || !is_ours {
            return None;
        }
        let identity = std::array::from_fn(|byte| bytes[16 + byte]);
        let header = Header { identity, history: word(32) };
        let end = Some(Rsn(word(48))).filter(|end| end.0 > 0);
        Some(Note { header, opening: word(40), end, log_end: Lsn(word(56)) })
    }

    pub(crate) fn encode(&self) -> [u8; NOTE_BYTES] {
        let mut bytes = [0; NOTE_BYTES];
        bytes[4..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.header.identity);
        bytes[32..40].copy_from_slice(&self.header.history.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.opening.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.end.map_or(0, Rsn::get).to_le_bytes());
        bytes[56..64].copy_from_slice(&self.log_end.get().to_le_bytes());
        let check = crc32c(MAGIC, &bytes[4..]);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
        bytes
    }
}
