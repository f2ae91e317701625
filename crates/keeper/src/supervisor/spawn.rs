//! Starting the keeper's processes.
//!
//! Promise: a process gets exactly the descriptors it is meant to have, runs the binary that it is
//! told to, and hears no signal of the keeper's terminal.
//! Never: waits for it.

use crate::handover::Handover;
use crate::kept::held::Held;
use crate::orders::{Orders, ServerOrders};
use crate::pulse::Pulse;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::raw::inherit_exactly;
use holdfast_machine::service_manager::VARIABLES;
use rustix::fs::MemfdFlags;
use serde::Serialize;
use std::fs::File;
use std::io::{self, PipeReader, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The binary that the keeper runs, even if the file was replaced since.
pub(crate) const OWN_BINARY: &str = "/proc/self/exe";

/// Memory that a front end and its keeper share.
pub(crate) struct Told<'a> {
    /// In which it gives signs of life.
    pub(crate) pulse: &'a Pulse,
    /// In which it finds its lease, if it may ever have one.
    pub(crate) lease: Option<BorrowedFd<'a>>,
}

/// Starts a front end from this binary. Its reports come out of the pipe, which ends when the
/// process does.
pub(crate) fn start_front(
    binary: BorrowedFd<'_>,
    orders: &Orders,
    held: &Held,
    told: &Told<'_>,
) -> Outcome<(Child, PipeReader)> {
    try_start_front(binary, orders, held, told).map_err(|error| {
        let what = format!("starting a front end of {}", orders.whose());
        let remedy = "see whether processes or memory ran out, or name a binary that runs here";
        Problem::caused(Exit::Failed, what, error, remedy)
    })
}

fn try_start_front(
    binary: BorrowedFd<'_>,
    orders: &Orders,
    held: &Held,
    told: &Told<'_>,
) -> io::Result<(Child, PipeReader)> {
    told.pulse.begin_anew()?;
    let mut passed = Vec::new();
    passed.extend(held.home.as_ref().map(|home| ("--home-fd", home.as_fd())));
    passed.extend(held.log.as_ref().map(|log| ("--log-fd", log.as_fd())));
    passed.extend(held.fuse.as_ref().map(|fuse| ("--fuse-fd", fuse.as_fd())));
    let mut ordered: Vec<_> = held.listeners.descriptors().collect();
    ordered.extend(held.handover.iter().flat_map(Handover::descriptors));
    ordered.push(told.pulse.as_fd());
    ordered.extend(told.lease);
    let orders = Orders {
        sockets: held.listeners.orders(),
        handover: held.handover.as_ref().map(Handover::orders),
        pulse_fd: Some(told.pulse.as_fd().as_raw_fd()),
        lease_fd: told.lease.map(|lease| lease.as_raw_fd()),
        ..orders.clone()
    };
    let arguments = ["front", "--volume", &orders.name];
    start_with(&path_of(binary), &arguments, &passed, &ordered, &write_orders(&orders)?)
}

/// Starts the server from this binary. Its reports come out of the pipe, which ends when the
/// process does.
pub(crate) fn start_server(
    binary: BorrowedFd<'_>,
    orders: &ServerOrders,
    listener: BorrowedFd<'_>,
    directories: &[OwnedFd],
    pulse: &Pulse,
) -> Outcome<(Child, PipeReader)> {
    let start = || {
        pulse.begin_anew()?;
        let mut ordered: Vec<_> = directories.iter().map(AsFd::as_fd).collect();
        ordered.push(pulse.as_fd());
        let orders = ServerOrders { pulse_fd: Some(pulse.as_fd().as_raw_fd()), ..orders.clone() };
        let passed = [("--listen-fd", listener)];
        start_with(&path_of(binary), &["server"], &passed, &ordered, &write_orders(&orders)?)
    };
    start().map_err(|error| {
        let remedy = "see whether processes or memory ran out, or name a binary that runs here";
        Problem::caused(Exit::Failed, "starting the server", error, remedy)
    })
}

/// The name of an open binary in the process that will run it.
fn path_of(binary: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", binary.as_raw_fd()).into()
}

/// Starts a process of ours with descriptors: those that a flag names, and those that its orders
/// do.
fn start_with(
    binary: &Path,
    arguments: &[&str],
    flagged: &[(&str, BorrowedFd<'_>)],
    ordered: &[BorrowedFd<'_>],
    orders: &File,
) -> io::Result<(Child, PipeReader)> {
    let (reader, writer) = io::pipe()?;
    let mut passed = vec![("--orders-fd", orders.as_fd()), ("--report-fd", writer.as_fd())];
    passed.extend(flagged);
    // The name is resolved in the new process before exec, when it still is the keeper's.
    let mut command = Command::new(binary);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.arg0("holdfast").args(arguments).process_group(0).stdin(Stdio::null());
    for (flag, descriptor) in &passed {
        command.arg(flag).arg(descriptor.as_raw_fd().to_string());
    }
    let inherited = passed.iter().map(|(_, fd)| fd).chain(ordered);
    inherit_exactly(&mut command, inherited.map(AsRawFd::as_raw_fd).collect());
    Ok((command.spawn()?, reader))
}

/// Orders are in a file without a name: readable at once, gone with the process.
fn write_orders(orders: &impl Serialize) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("holdfast-orders", MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(&mut file, orders)?;
    file.flush()?;
    Ok(file)
}
