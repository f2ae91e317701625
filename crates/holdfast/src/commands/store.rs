//! `holdfast store open | get | put | delete | scan | load | stat | verify | trim |
//! backup | restore | bench`.
//!
//! Promise: works on any store that nobody has open, and closes it in order; what is reported
//! written is on the disk; every problem says what to do next.
//! Never: makes a store, but for `open` and `restore`; makes a tree, but for `put` and `load`.

mod backup;
mod bank;
mod bench;
mod delete;
mod door;
mod get;
mod load;
mod open;
mod opened;
mod put;
mod restore;
mod scan;
mod stat;
mod trim;
mod verify;

use self::door::Door;
use crate::cli::store::{StoreArgs, StoreCommand};
use crate::output::Output;
use holdfast_config::problem::Outcome;
use std::path::Path;

/// Does what is asked of stores.
pub(crate) fn store(config: &Path, command: StoreCommand, output: Output) -> Outcome<()> {
    let door = Door { config };
    match command {
        StoreCommand::Open { store } => open::open(door, &store, output),
        StoreCommand::Get { tree, key } => get::get(door, &tree, &key, output),
        StoreCommand::Put { tree, key, value } => put::put(door, &tree, &key, &value, output),
        StoreCommand::Delete { tree, key } => delete::delete(door, &tree, &key, output),
        StoreCommand::Scan { tree, part } => scan::scan(door, &tree, &part, output),
        StoreCommand::Load { tree, file } => load::load(door, &tree, file.as_deref(), output),
        StoreCommand::Stat { store } => stat::stat(door, &store, output),
        StoreCommand::Verify { store, reclaim } => verify::verify(door, &store, reclaim, output),
        StoreCommand::Trim { store, keep } => trim::trim(door, &store, keep, output),
        StoreCommand::Backup { store, to, forward } => {
            backup::backup(door, &store, &to, forward, output)
        }
        StoreCommand::Restore { from, to, at, log } => {
            restore::restore(door, &from, &StoreArgs { directory: to, log }, at, output)
        }
        StoreCommand::Bench { directory, seconds } => bench::bench(&directory, seconds, output),
    }
}
