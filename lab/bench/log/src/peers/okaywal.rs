//! okaywal.
//!
//! Promise: a set is one entry with a chunk a record. One segment, filled with zeros when the log
//! is opened, takes everything, so no checkpoint comes between.
//! Never: can leave out a sync.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use okaywal::{
    Configuration, Entry, EntryId, LogManager, ReadChunkResult, SegmentReader, WriteAheadLog,
};

use super::{Kind, Peer, Terms, Unsynced, Writer};
use crate::Failure;
use crate::record::Format;
use crate::set::Set;
use crate::tally::Tally;

pub(super) const KIND: Kind =
    Kind { name: "okaywal", open, read: Some(read), unsynced: Unsynced::Never };

/// Bytes of a read or a write of the file.
const BUFFER_BYTES: usize = 64 << 10;

struct Log(WriteAheadLog);

/// What looks at what an opened log holds.
struct Reader {
    tally: Option<Arc<Mutex<Tally>>>,
    chunk: Vec<u8>,
}

fn open_log(folder: &Path, bytes: u64, reader: Reader) -> io::Result<WriteAheadLog> {
    Configuration::default_for(folder)
        .preallocate_bytes(u32::try_from(bytes).unwrap_or(u32::MAX))
        .checkpoint_after_bytes(u64::MAX)
        .buffer_bytes(BUFFER_BYTES)
        .open(reader)
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let reader = Reader { tally: None, chunk: Vec::new() };
    Ok(Box::new(Log(open_log(folder, terms.bytes, reader)?)))
}

fn read(folder: &Path, tally: &mut Tally) -> Result<(), Failure> {
    // The log's own thread wants to keep what it gives the records to.
    let empty = Tally::of_order(Format::MessagePack);
    let lent = Arc::new(Mutex::new(std::mem::replace(tally, empty)));
    let reader = Reader { tally: Some(lent.clone()), chunk: Vec::new() };
    let log = open_log(folder, super::RECOVERY_BYTES, reader)?;
    let mut counted = lent.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::swap(tally, &mut counted);
    drop(counted);
    Ok(log.shutdown()?)
}

impl Peer for Log {
    fn writer(&self) -> Box<dyn Writer + '_> {
        Box::new(&self.0)
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.shutdown()?)
    }
}

impl Writer for &WriteAheadLog {
    fn append(&mut self, set: &mut Set<'_>) -> Result<(), Failure> {
        let records = set.encode()?;
        let mut entry = self.begin_entry()?;
        for (_, bytes) in records {
            entry.write_chunk(bytes)?;
        }
        entry.commit()?;
        Ok(())
    }
}

impl Reader {
    /// Reads and checks the next chunk; false at the end of the entry.
    fn chunk(&mut self, entry: &mut Entry<'_>) -> io::Result<bool> {
        let ReadChunkResult::Chunk(mut chunk) = entry.read_chunk()? else { return Ok(false) };
        self.chunk.clear();
        io::Read::read_to_end(&mut chunk, &mut self.chunk)?;
        if !chunk.check_crc()? {
            return Err(io::Error::other("a chunk with a wrong checksum"));
        }
        Ok(true)
    }
}

impl LogManager for Reader {
    fn recover(&mut self, entry: &mut Entry<'_>) -> io::Result<()> {
        while self.chunk(entry)? {
            if let Some(tally) = &self.tally {
                let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                tally.bytes(&self.chunk).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _last: EntryId,
        _entries: &mut SegmentReader,
        _log: &WriteAheadLog,
    ) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Reader")
    }
}
