//! raft-engine: TiKV's log.
//!
//! Promise: a set is one batch of entries of the writer's own raft group. No compression, as the
//! others do not compress.
//! Never: purges.

use std::path::Path;

use protobuf::descriptor::UninterpretedOption;
use raft_engine::{Config, Engine, LogBatch, MessageExt, ReadableSize};

use super::{Durability, Kind, Peer, Terms, Unsynced, Writer};
use crate::Failure;
use crate::set::Set;
use crate::tally::Tally;

pub(super) const KIND: Kind =
    Kind { name: "raft-engine", open, read: Some(read), unsynced: Unsynced::Sets };

/// Raft group of the first writer.
const FIRST_GROUP: u64 = 1;

/// Entries that are read at once.
const FETCHED: u64 = 4096;

/// An entry: a message that comes with every protobuf and has a number and bytes.
struct Entry;

impl MessageExt for Entry {
    type Entry = UninterpretedOption;

    fn index(entry: &UninterpretedOption) -> u64 {
        entry.get_positive_int_value()
    }
}

struct Log {
    engine: Engine,
    sync: bool,
}

struct Hand<'a> {
    log: &'a Log,
    batch: LogBatch,
    entries: Vec<UninterpretedOption>,
}

fn open_engine(folder: &Path) -> Result<Engine, Failure> {
    let config = Config {
        dir: folder.to_str().ok_or("a path that is not text")?.into(),
        batch_compression_threshold: ReadableSize(0),
        ..Config::default()
    };
    Ok(Engine::open(config)?)
}

fn open(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let sync = terms.durability == Durability::Synced;
    Ok(Box::new(Log { engine: open_engine(folder)?, sync }))
}

fn read(folder: &Path, tally: &mut Tally) -> Result<(), Failure> {
    let engine = open_engine(folder)?;
    let mut entries = Vec::new();
    for group in engine.raft_groups() {
        let (first, last) = (engine.first_index(group), engine.last_index(group));
        let (mut next, last) = first.zip(last).ok_or("an empty group")?;
        while next <= last {
            let end = (next + FETCHED).min(last + 1);
            entries.clear();
            engine.fetch_entries_to::<Entry>(group, next, end, None, &mut entries)?;
            entries.iter().try_for_each(|entry| tally.bytes(entry.get_string_value()))?;
            next = end;
        }
    }
    Ok(())
}

impl Peer for Log {
    fn writer(&self) -> Box<dyn Writer + '_> {
        Box::new(Hand { log: self, batch: LogBatch::default(), entries: Vec::new() })
    }

    fn sync(&self) -> Result<(), Failure> {
        // `Engine::sync` writes an empty batch, and the engine returns from that before it syncs.
        let mut batch = LogBatch::default();
        batch.put(FIRST_GROUP, b"synced".to_vec(), Vec::new())?;
        self.engine.write(&mut batch, true)?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Writer for Hand<'_> {
    fn append(&mut self, set: &mut Set<'_>) -> Result<(), Failure> {
        let group = FIRST_GROUP + u64::from(set.writer());
        self.entries.clear();
        for (id, bytes) in set.encode()? {
            let mut entry = UninterpretedOption::default();
            entry.set_positive_int_value(u64::from(id));
            entry.set_string_value(bytes.to_vec());
            self.entries.push(entry);
        }
        self.batch.add_entries::<Entry>(group, &self.entries)?;
        self.log.engine.write(&mut self.batch, self.log.sync)?;
        Ok(())
    }
}
