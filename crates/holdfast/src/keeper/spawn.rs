//! Starting the keeper's processes.
//!
//! Promise: a process gets exactly the descriptors it is meant to have, runs the very binary its
//! keeper runs (the server: the one it is told to), and hears no signal of the keeper's terminal.
//! Never: waits for it.

use super::listeners::Listeners;
use crate::exit::Exit;
use crate::orders::{Orders, ServerOrders};
use crate::problem::{Outcome, Problem};
use rustix::fs::MemfdFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use serde::Serialize;
use std::fs::File;
use std::io::{self, PipeReader, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The binary that the keeper runs, even if the file was replaced since.
pub(crate) const OWN_BINARY: &str = "/proc/self/exe";

/// While a descriptor is made inheritable no other process may be started: it would inherit it too.
static STARTING: Mutex<()> = Mutex::new(());

/// The descriptors that outlive a front end.
#[derive(Debug)]
pub(crate) struct Held {
    /// The home, opened before the mount covered it.
    pub home: OwnedFd,
    /// The log directory, unless the server has it.
    pub log: Option<OwnedFd>,
    /// The FUSE connection while it is mounted.
    pub fuse: Option<OwnedFd>,
    /// Where clients come, if the volume is a network block device.
    pub nbd: Listeners,
}

/// Starts any process that inherits nothing but its standard streams.
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Starts a front end. Its reports come out of the pipe, which ends when the process does.
pub(crate) fn start_front(orders: &Orders, held: &Held) -> Outcome<(Child, PipeReader)> {
    try_start_front(orders, held).map_err(|error| {
        let what = format!("starting a front end of volume {}", orders.name);
        Problem::new(Exit::Failed, what, error, "see whether processes or memory ran out")
    })
}

fn try_start_front(orders: &Orders, held: &Held) -> io::Result<(Child, PipeReader)> {
    let mut passed = vec![("--home-fd", held.home.as_fd())];
    passed.extend(held.log.as_ref().map(|log| ("--log-fd", log.as_fd())));
    passed.extend(held.fuse.as_ref().map(|fuse| ("--fuse-fd", fuse.as_fd())));
    passed.extend(held.nbd.sockets().map(|socket| ("--nbd-fd", socket)));
    let arguments = ["front", "--volume", &orders.name];
    start_with(Path::new(OWN_BINARY), &arguments, &passed, &[], &write_orders(orders)?)
}

/// Starts the server from this binary. Its reports come out of the pipe, which ends when the
/// process does.
pub(crate) fn start_server(
    binary: BorrowedFd<'_>,
    orders: &ServerOrders,
    listener: BorrowedFd<'_>,
    directories: &[OwnedFd],
) -> Outcome<(Child, PipeReader)> {
    let start = || {
        let directories: Vec<_> = directories.iter().map(AsFd::as_fd).collect();
        let binary = PathBuf::from(format!("/proc/self/fd/{}", binary.as_raw_fd()));
        let passed = [("--listen-fd", listener)];
        start_with(&binary, &["server"], &passed, &directories, &write_orders(orders)?)
    };
    start().map_err(|error| {
        let remedy = "see whether processes or memory ran out, or name a binary that runs here";
        Problem::new(Exit::Failed, "starting the server", error, remedy)
    })
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
    command.arg0("holdfast").args(arguments).process_group(0).stdin(Stdio::null());
    for (flag, descriptor) in &passed {
        command.arg(flag).arg(descriptor.as_raw_fd().to_string());
    }
    let inherited: Vec<_> = passed.iter().map(|(_, fd)| fd).chain(ordered).collect();
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let mark = |flags| inherited.iter().try_for_each(|descriptor| fcntl_setfd(descriptor, flags));
    mark(FdFlags::empty())?;
    let started = command.spawn();
    mark(FdFlags::CLOEXEC)?;
    Ok((started?, reader))
}

/// Orders are in a file without a name: readable at once, gone with the process.
fn write_orders(orders: &impl Serialize) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("holdfast-orders", MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(&mut file, orders)?;
    file.flush()?;
    Ok(file)
}
