//! Snapshots of machines that the server keeps.
//!
//! Promise: memory and disks of a snapshot are of one instant, at which the guest stands still; it
//! goes on afterwards, whether the snapshot was made or not.
//! Never: touches memory or disks before the snapshot is known to fit the machine.

use super::saving::{can_be_saved, memory, save_state};
use crate::output::Output;
use crate::vm::{Qmp, QmpError, ServiceError, Snapshot, SnapshotService, Taken, part};
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Has the server keep a snapshot of a running guest.
pub(super) fn snapshot(
    config: &Config,
    folder: &Path,
    to: &str,
    output: Output,
) -> Outcome<ExitCode> {
    let failed = |error: &dyn std::fmt::Display| {
        let what = format!("taking a snapshot of the machine in {}", folder.display());
        Problem::new(Exit::Failed, what, error, "there is no snapshot; mend this and repeat it")
    };
    let (service, name) = named(to)?;
    config.snapshot(service)?;
    let service = SnapshotService::connect(config, service).map_err(|error| failed(&error))?;
    let kept = Snapshot::at(folder).map_err(|error| failed(&error))?;
    let mut qmp = Qmp::connect(&kept.socket()).map_err(|error| failed(&error))?;
    let command = kept.command().map_err(|error| failed(&error))?;
    let memory = memory(&mut qmp).map_err(|error| failed(&error))?;
    can_be_saved(&mut qmp).map_err(|error| failed(&error))?;
    go_on_after_a_kill(&mut qmp).map_err(|error| failed(&error))?;
    let began = Instant::now();
    let taken = take(&service, name, &kept, &mut qmp, &Taken::new(memory, command));
    let goes_on = qmp.ask("cont", &json!({}));
    let took_ms = began.elapsed().as_millis();
    taken.map_err(|error| failed(&error))?;
    goes_on.map_err(|error| {
        let what = format!("letting the guest in {} go on", folder.display());
        Problem::new(Exit::Failed, what, error, "the snapshot is there; take it up")
    })?;
    output.done(&format!("{to} is there; the guest stood still for {took_ms} ms, and goes on"));
    Ok(ExitCode::from(Exit::Ok))
}

/// A guest that stands still because this command was killed would refuse to be saved again.
fn go_on_after_a_kill(qmp: &mut Qmp) -> Result<(), QmpError> {
    match qmp.ask("query-status", &json!({}))?["status"] == "postmigrate" {
        true => qmp.ask("cont", &json!({})).map(drop),
        false => Ok(()),
    }
}

fn take(
    service: &SnapshotService,
    name: &str,
    kept: &Snapshot,
    qmp: &mut Qmp,
    taken: &Taken,
) -> Result<(), QmpError> {
    save_state(kept, qmp)?;
    let note = serde_json::to_string(taken).expect("plain data");
    let made = service.make(name, &note, &files(kept, taken));
    Ok(made.map_err(io_error)?)
}

/// Makes the guest's memory, its state and its disks what they were. The guest does not run: nobody
/// has its control socket, as whoever boots it has seen.
pub(super) fn bring(
    config: &Config,
    from: &str,
    kept: &Snapshot,
    command: &[String],
) -> io::Result<bool> {
    let (service, name) = named(from).map_err(|problem| io::Error::other(problem.to_string()))?;
    let service = SnapshotService::connect(config, service).map_err(io_error)?;
    let snapshot = service.find(name).map_err(io_error)?;
    let taken: Taken = serde_json::from_str(&snapshot.note)?;
    if let Some(why) = taken.mismatch(command) {
        return Err(io::Error::other(why));
    }
    if let Some(other) = taken.unnamed_memory(command) {
        let why = format!("{} is no memory of this machine; nothing was written", other.display());
        return Err(io::Error::other(why));
    }
    // What is in the folder is of the memory that is about to go.
    kept.forget()?;
    service.bring(&snapshot, &files(kept, &taken)).map_err(io_error)?;
    service.restore_disks(&snapshot).map_err(io_error)?;
    Ok(true)
}

/// What a client puts of a machine, in this order.
fn files(kept: &Snapshot, taken: &Taken) -> Vec<PathBuf> {
    [kept.state()].into_iter().chain(taken.memory.iter().cloned()).collect()
}

fn named(name: &str) -> Outcome<(&str, &str)> {
    part(name).ok_or_else(|| {
        let (what, why) = ("finding a snapshot".to_owned(), format!("{name} names no snapshot"));
        Problem::new(Exit::Usage, what, why, "name service and snapshot: SERVICE/NAME")
    })
}

fn io_error(error: ServiceError) -> io::Error {
    io::Error::other(error.to_string())
}
