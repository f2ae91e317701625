//! Starting front-end processes.
//!
//! Promise: a front end gets exactly the descriptors it is meant to have, runs the very binary its
//! keeper runs even if the file was replaced since, and hears no signal of the keeper's terminal.
//! Never: waits for it.

use crate::exit::Exit;
use crate::orders::Orders;
use crate::problem::{Outcome, Problem};
use rustix::fs::MemfdFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::File;
use std::io::{self, PipeReader, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// While a descriptor is made inheritable no other process may be started: it would inherit it too.
static STARTING: Mutex<()> = Mutex::new(());

/// The descriptors that outlive a front end.
#[derive(Debug)]
pub(crate) struct Held {
    /// The home, opened before the mount covered it.
    pub home: OwnedFd,
    /// The log directory.
    pub log: OwnedFd,
    /// The FUSE connection while it is mounted.
    pub fuse: Option<OwnedFd>,
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
    let (reader, writer) = io::pipe()?;
    let written = write_orders(orders)?;
    let mut passed = vec![
        ("--orders-fd", written.as_fd()),
        ("--report-fd", writer.as_fd()),
        ("--home-fd", held.home.as_fd()),
        ("--log-fd", held.log.as_fd()),
    ];
    passed.extend(held.fuse.as_ref().map(|fuse| ("--fuse-fd", fuse.as_fd())));
    // The name is resolved in the new process before exec, when it still is the keeper's binary.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("holdfast").args(["front", "--volume", &orders.name]).process_group(0);
    command.stdin(Stdio::null());
    for (flag, descriptor) in &passed {
        command.arg(flag).arg(descriptor.as_raw_fd().to_string());
    }
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let mark = |flags| passed.iter().try_for_each(|(_, descriptor)| fcntl_setfd(descriptor, flags));
    mark(FdFlags::empty())?;
    let started = command.spawn();
    mark(FdFlags::CLOEXEC)?;
    Ok((started?, reader))
}

/// Orders are in a file without a name: readable at once, gone with the process.
fn write_orders(orders: &Orders) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("holdfast-orders", MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(&mut file, orders)?;
    file.flush()?;
    Ok(file)
}
