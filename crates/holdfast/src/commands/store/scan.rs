//! `holdfast store scan`.
//!
//! Promise: every key of the range once, in order, spelled so that `load` takes
//! it again.
//! Never: keeps more in memory than one transaction reads.

use super::door::Door;
use super::opened::bytes;
use crate::cli::store::{InTree, ScanArgs};
use crate::output::{Output, read_to_end, write_line};
use crate::spelling;
use holdfast_config::problem::Outcome;
use holdfast_store::{Direction, KeyValue, Store, TransactionError, Tree};
use std::io::{self, BufWriter, Write, stdout};
use std::ops::Bound;

/// What it does, for messages.
const DOING: &str = "reading";

/// Keys that are read in one transaction, which has their locks until it ends.
const KEYS: usize = 1000;

/// What is still to be printed.
struct Rest {
    low: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    direction: Direction,
    keys: usize,
}

/// Prints keys and values.
pub(super) fn scan(door: Door<'_>, tree: &InTree, part: &ScanArgs, output: Output) -> Outcome<()> {
    let key =
        |text: &Option<String>| text.as_deref().map(|text| bytes(DOING, tree, text)).transpose();
    let mut rest = Rest {
        low: key(&part.from)?.map_or(Bound::Unbounded, Bound::Included),
        end: key(&part.to)?.map_or(Bound::Unbounded, Bound::Excluded),
        direction: if part.reverse { Direction::Down } else { Direction::Up },
        keys: part.limit.unwrap_or(usize::MAX),
    };
    let opened = door.open(DOING, &tree.store)?;
    let root = opened.tree(&tree.tree)?;
    let mut out = BufWriter::new(stdout().lock());
    while rest.keys > 0 {
        // What came before a problem is printed when the buffer is dropped.
        let found = rest.next(&opened.store, &root).map_err(|error| opened.refused(&error))?;
        let printed = print(&mut out, &found, output.json);
        if !printed.map_err(|error| opened.failed(&error))? {
            break;
        }
    }
    let _read = read_to_end(&mut out).map_err(|error| opened.failed(&error))?;
    opened.close()
}

impl Rest {
    /// The next keys, which are to be printed no more.
    fn next(&mut self, store: &Store, tree: &Tree) -> Result<Vec<KeyValue>, TransactionError> {
        let keys = self.keys.min(KEYS);
        let mut transaction = store.begin();
        let range = (self.low.clone(), self.end.clone());
        let found = transaction.scan(tree, range, self.direction).take(keys);
        let found = found.collect::<Result<Vec<_>, _>>()?;
        self.keys = if found.len() < keys { 0 } else { self.keys - keys };
        if let Some((last, _)) = found.last() {
            let behind = Bound::Excluded(last.clone());
            match self.direction {
                Direction::Up => self.low = behind,
                Direction::Down => self.end = behind,
            }
        }
        Ok(found)
    }
}

/// Prints what was found. Returns whether anybody reads on.
fn print(out: &mut impl Write, found: &[KeyValue], as_json: bool) -> io::Result<bool> {
    for entry in found {
        if !write_line(out, &line(entry, as_json))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn line((key, value): &KeyValue, as_json: bool) -> String {
    let (key, value) = (spelling::text(key), spelling::text(value));
    match as_json {
        true => serde_json::json!({ "key": key, "value": value }).to_string(),
        false => format!("{key}\t{value}"),
    }
}
