//! wal-db.
//!
//! Promise: a set is as many appends as it has records, then one sync, as the log knows no sets.
//! Never: makes a set atomic.

use std::path::{Path, PathBuf};

use wal_db::Wal;

use super::{Durability, Kind, Peer, Terms, Unsynced, Writer};
use crate::Failure;
use crate::set::Set;
use crate::tally::Tally;

pub(super) const KIND: Kind =
    Kind { name: "wal-db", open, read: Some(read), unsynced: Unsynced::Sets };

struct Log {
    wal: Wal,
    sync: bool,
}

fn file(folder: &Path) -> PathBuf {
    folder.join("wal")
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let sync = terms.durability == Durability::Synced;
    Ok(Box::new(Log { wal: Wal::open(file(folder))?, sync }))
}

fn read(folder: &Path, tally: &mut Tally) -> Result<(), Failure> {
    let wal = Wal::open(file(folder))?;
    for record in wal.iter()? {
        tally.bytes(record?.data())?;
    }
    Ok(())
}

impl Peer for Log {
    fn writer(&self) -> Box<dyn Writer + '_> {
        Box::new(self)
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.wal.sync()?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Writer for &Log {
    fn append(&mut self, set: &mut Set<'_>) -> Result<(), Failure> {
        for (_, bytes) in set.encode()? {
            let _place = self.wal.append(bytes)?;
        }
        if self.sync { Ok(self.wal.sync()?) } else { Ok(()) }
    }
}
