//! A map that survives its process: every change is logged first, and replayed when it is opened.
//!
//! `key_value DIRECTORY` prints the map, `key_value DIRECTORY KEY` one value; `key_value DIRECTORY
//! KEY VALUE` puts a pair into it, or takes it out if the value is empty.
//!
//! Promise: a change that was confirmed is in every later map.
//! Never: writes anything but the log.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;

use holdfast_wal::{Log, Options, Record, format::MessagePack};
use serde::{Deserialize, Serialize};

/// A key's new value, or none.
#[derive(Serialize, Deserialize)]
pub(crate) struct Change {
    key: String,
    value: Option<String>,
}

impl Record for Change {
    const NAME: &'static str = "example.change";
}

/// The map, and the log that is the truth about it.
pub(crate) struct Map {
    log: Log<Change, MessagePack>,
    pairs: BTreeMap<String, String>,
}

impl Map {
    /// Replays all changes.
    pub(crate) fn open(directory: &Path) -> Result<Map, Box<dyn Error>> {
        let (log, _) = Log::open_or_create(directory, &Options::default())?;
        let mut map = Map { log, pairs: BTreeMap::new() };
        for entry in map.log.iter() {
            apply(&mut map.pairs, entry?.record);
        }
        Ok(map)
    }

    /// Changes the value of a key. When this returns, the change is durable.
    pub(crate) fn put(&mut self, key: &str, value: Option<&str>) -> Result<(), Box<dyn Error>> {
        let change = Change { key: key.to_owned(), value: value.map(str::to_owned) };
        self.log.append_durable(&change)?;
        apply(&mut self.pairs, change);
        Ok(())
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.pairs.get(key).map(String::as_str)
    }
}

fn apply(pairs: &mut BTreeMap<String, String>, change: Change) {
    match change.value {
        Some(value) => pairs.insert(change.key, value),
        None => pairs.remove(&change.key),
    };
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut map = Map::open(Path::new(arguments.first().ok_or("key_value DIRECTORY ...")?))?;
    match &arguments[1..] {
        [] => map.pairs.iter().try_for_each(|(key, value)| writeln!(stdout(), "{key} {value}"))?,
        [key] => writeln!(stdout(), "{}", map.get(key).unwrap_or("(nothing)"))?,
        [key, value, ..] => map.put(key, (!value.is_empty()).then_some(value))?,
    }
    Ok(())
}
