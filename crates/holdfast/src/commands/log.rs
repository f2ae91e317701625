//! `holdfast log create | append | dump | tail | stat | verify | repair | truncate | bench`.
//!
//! Promise: works on any log directory, whatever its records are; a log that somebody has open is
//! not changed; every problem says what to do next.
//! Never: knows a configured log or the server, except to make one.

mod append;
mod bench;
mod create;
mod dump;
mod keys;
mod look;
mod opened;
mod records;
mod repair;
mod stat;
mod tail;
mod truncate;
mod verify;

use crate::cli::log::LogCommand;
use crate::commands::{accept, mending, volume};
use crate::output::Output;
use holdfast_config::problem::Outcome;
use std::path::Path;

/// Does what is asked of logs.
pub(crate) fn log(config: &Path, command: LogCommand, output: Output) -> Outcome<()> {
    match command {
        LogCommand::Make { name } => volume::make_served(config, &name, output),
        LogCommand::Mend { name } => mending::log(config, &name, output),
        LogCommand::Accept { name, .. } => accept::memory_of_log(config, &name, output),
        LogCommand::Create(args) => create::create(&args, output),
        LogCommand::Append { log, records } => append::append(&log, records, output),
        LogCommand::Dump { log, from, limit, reverse } => {
            dump::dump(&log, &dump::Part { from, limit, reverse }, output)
        }
        LogCommand::Tail { log, records, follow: false } => tail::tail(&log, records, output),
        LogCommand::Tail { log, records, follow: true } => tail::follow(&log, records, output),
        LogCommand::Stat { log } => stat::stat(&log, output),
        LogCommand::Verify { directory } => verify::verify(&directory, output),
        LogCommand::Repair { directory, to, .. } => {
            repair::repair(&directory, to.as_deref(), output)
        }
        LogCommand::Truncate { log, at } => truncate::truncate(&log, &at, output),
        LogCommand::Bench { directory, seconds } => bench::bench(&directory, seconds, output),
    }
}
