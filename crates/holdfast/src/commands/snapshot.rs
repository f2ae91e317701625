//! `holdfast snapshot make | list | remove`.
//!
//! Promise: what is said of snapshots is what the server says that has them.
//! Never: makes a store where one was expected.

use crate::cli::snapshot::SnapshotCommand;
use crate::commands::disk::{self};
use crate::output::Output;
use crate::vm::{SnapshotService, part};
use holdfast_config::Config;
use holdfast_config::claims::PowerSource;
use holdfast_config::problem::Outcome;
use holdfast_config::sizes::rounded;
use holdfast_config::verdict_text;
use holdfast_machine::configuration;
use holdfast_process::snapshots::of;
use holdfast_snapshot::Snapshot;
use std::fmt::Write;
use std::path::Path;

/// Does what is asked of snapshots.
pub(crate) fn snapshot(config: &Path, command: SnapshotCommand, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    match command {
        SnapshotCommand::Make { service } => make(&config, &service, output),
        SnapshotCommand::List { service } => list(&config, &service, output),
        SnapshotCommand::Remove { name } => remove(&config, &name, output),
    }
}

fn make(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let store = config.snapshot(name)?.store();
    let verdict = disk::make_one(of(name), &store, PowerSource::None)?;
    let (size, verdict) = (rounded(store.size.0), verdict_text(&verdict));
    output.done(&format!("{name} is made: {size} for snapshots\n{verdict}"));
    Ok(())
}

fn list(config: &Config, name: &str, output: Output) -> Outcome<()> {
    config.snapshot(name)?;
    let list = SnapshotService::connect(config, name).and_then(|service| service.list());
    let list = list.map_err(|error| error.problem("asking for snapshots"))?;
    let text: String = list.iter().map(line).collect();
    let text = if list.is_empty() { "there are none\n" } else { &*text };
    output.result(&list, text.trim_end());
    Ok(())
}

/// A snapshot for people.
fn line(snapshot: &Snapshot) -> String {
    let mut text = format!("{}\n", snapshot.name);
    for image in &snapshot.images {
        let held = image.held_bytes.map_or_else(|| "damaged".to_owned(), rounded);
        let _ = writeln!(text, "  {:<12} {}, takes {held}", image.name, rounded(image.size_bytes));
    }
    text
}

/// Removes one snapshot, or all of a service that nobody serves, with its memory.
fn remove(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let Some((service, snapshot)) = part(name) else {
        disk::remove_one(of(name), &config.snapshot(name)?.store())?;
        output.done(&format!("{name} is removed, and its memory given back"));
        return Ok(());
    };
    config.snapshot(service)?;
    let service = SnapshotService::connect(config, service);
    let removed = service.and_then(|service| service.remove(snapshot));
    removed.map_err(|error| error.problem("removing a snapshot"))?;
    output.done(&format!("{snapshot} is removed"));
    Ok(())
}
