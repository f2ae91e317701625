//! Which keeper a front end has.
//!
//! Promise: a keeper that lives is found by the front end it has started, whatever socket this
//! configuration names.
//! Never: takes one that is ending, or has ended, for one that lives.

use crate::control::connect::listens;
use holdfast_attach::observe::observe;
use holdfast_config::VolumeConfig;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::{Shown, process};
use holdfast_machine::holders::COMMAND_NAME;
use holdfast_machine::lock::front_end_with;
use holdfast_machine::processes::{Process, ask};
use std::fs;
use std::path::{Path, PathBuf};

/// A keeper, by its front end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeeperOf {
    pid: u32,
    /// None for a `holdfast run`.
    socket: Option<PathBuf>,
}

/// The front end of a volume, by the memory, or by the home if the name of the memory is gone.
pub fn front_end_of(volume: &VolumeConfig) -> Option<u32> {
    match observe(&volume.medium()) {
        Ok(seen) => seen.front_end_pid,
        Err(_) => front_end_with(&volume.home),
    }
}

/// Refuses to do with a front end what only its keeper may, if it has one, and that is another.
pub fn refuse_kept_by_another(what: &str, front_end: Option<u32>) -> Outcome<()> {
    let Some(keeper) = front_end.and_then(keeper_of) else { return Ok(()) };
    let pid = keeper.pid;
    let Some(socket) = &keeper.socket else {
        let why = format!("a `holdfast run`, process {pid}, serves it");
        let remedy = format!(
            "nothing was changed; wait for its end, or have it end its command and give everything \
             back: `kill -TERM {pid}`"
        );
        return Err(Problem::new(Exit::InUse, what, why, remedy));
    };
    let shown = Shown::name(socket);
    if !listens(socket) {
        let why = format!("keeper {pid} serves it, and does not answer at its socket {shown}");
        let remedy = format!(
            "nothing was changed; have it give everything back and end: `kill -TERM {pid}`, and \
             start it again"
        );
        return Err(Problem::new(Exit::InUse, what, why, remedy));
    }
    let why = format!("another keeper, process {pid}, serves it at socket {shown}");
    let remedy = format!(
        "nothing was changed; set keeper.socket to that and ask it, with the configuration that it \
         was started with; or have it give everything back and end: `kill -TERM {pid}`"
    );
    Err(Problem::new(Exit::InUse, what, why, remedy))
}

/// The keeper that started this process and goes on, if it is not this process.
fn keeper_of(front_end: u32) -> Option<KeeperOf> {
    let pid = process::parent(front_end).filter(|pid| *pid != std::process::id())?;
    let is_keeper = process::name(pid).is_some_and(|name| name == COMMAND_NAME);
    (is_keeper && process::lives(pid)).then(|| KeeperOf { pid, socket: socket_of(pid) })
}

/// The socket of the keeper with this number: its lock lies beside it.
fn socket_of(pid: u32) -> Option<PathBuf> {
    let open = |it: &Process| -> Vec<PathBuf> {
        it.list("fd").into_iter().filter_map(|link| fs::read_link(link).ok()).collect()
    };
    ask(pid, open)?.iter().find_map(|path| socket_beside(path))
}

fn socket_beside(lock: &Path) -> Option<PathBuf> {
    let is_lock = lock.extension().is_some_and(|extension| extension == "lock");
    is_lock.then(|| lock.with_extension(""))
}
