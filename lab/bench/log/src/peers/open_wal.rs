//! open-wal.
//!
//! Promise: a set is as many appends as it has records, then one commit. The log has one writer,
//! so threads take turns at a mutex, each with its own commit.
//! Never: makes a set atomic at the end of a segment. Without a commit nothing leaves its memory,
//! so deferred sets are committed by the thousand.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use open_wal::{Lsn, Wal, WalConfig};

use super::{Durability, Kind, Peer, Terms, Unsynced, Writer};
use crate::Failure;
use crate::set::Set;
use crate::tally::Tally;

pub(super) const KIND: Kind =
    Kind { name: "open-wal", open, read: Some(read), unsynced: Unsynced::Batches };

/// Records of a commit that nobody waits for.
const DEFERRED: u64 = 8192;

struct Log {
    wal: Mutex<Wal>,
    /// Records that may wait for their commit.
    waiting_max: u64,
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let (wal, _report) = Wal::open(folder, WalConfig::default())?;
    let waiting_max = if terms.durability == Durability::Synced { 0 } else { DEFERRED };
    Ok(Box::new(Log { wal: Mutex::new(wal), waiting_max }))
}

fn read(folder: &Path, tally: &mut Tally) -> Result<(), Failure> {
    let (wal, _report) = Wal::open(folder, WalConfig::default())?;
    let mut reader = wal.reader_from(Lsn(0))?;
    while let Some(record) = reader.next() {
        tally.bytes(record?.1)?;
    }
    Ok(())
}

impl Log {
    fn wal(&self) -> MutexGuard<'_, Wal> {
        self.wal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer for Log {
    fn writer(&self) -> Box<dyn Writer + '_> {
        Box::new(self)
    }

    fn sync(&self) -> Result<(), Failure> {
        self.wal().commit()?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Writer for &Log {
    fn append(&mut self, set: &mut Set<'_>) -> Result<(), Failure> {
        let records = set.encode()?;
        let mut wal = self.wal();
        for (_, bytes) in records {
            wal.append(bytes)?;
        }
        if wal.last_lsn().0 - wal.durable_lsn().0 > self.waiting_max {
            wal.commit()?;
        }
        Ok(())
    }
}
