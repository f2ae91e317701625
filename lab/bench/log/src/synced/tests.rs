//! That a log which only says it is durable does not get a figure.

use std::path::Path;

use holdfast_bench_common::flushes::Device;
use holdfast_bench_common::place::Place;

use super::{Load, measure};
use crate::Failure;
use crate::effort::Effort;
use crate::peers::{self, Durability, Kind, Peer, Terms, Unsynced};
use crate::record::Format;

/// A log that never syncs, whatever it is told.
const LIAR: Kind = Kind { name: "liar", open: open_liar, read: None, unsynced: Unsynced::Sets };

fn open_liar(folder: &Path, terms: &Terms) -> Result<Box<dyn Peer>, Failure> {
    let honest = peers::all().find(|kind| kind.name == "wal-db").unwrap();
    (honest.open)(folder, &Terms { durability: Durability::Deferred, ..*terms })
}

#[test]
fn a_log_that_acknowledges_without_a_sync_is_refused() {
    let whole = Place::whole("bench-log-test-liar").unwrap();
    let Some(device) = Device::below(whole.path()).unwrap() else {
        println!("not tried: this disk's flushes cannot be counted");
        return;
    };
    let load = Load { threads: 1, set: 1, format: Format::MessagePack };
    let refused = measure(&[&LIAR], load, &Effort::quick(), &whole, Some(&device));
    let said = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(said.contains("NOT DURABLE"), "{said}");
}
