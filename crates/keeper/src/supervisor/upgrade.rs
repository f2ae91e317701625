//! The replacement of a process of the keeper's by one of another binary.
//!
//! Promise: whoever asked hears how it ended; the binary to go back to stays open until the new
//! process serves.
//! Never: starts or ends a process; who supervises it does.

use crate::supervisor::progress::Progress;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use rustix::fs::{Access, FileType, Mode, OFlags, access, fstat};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long a new process may take to serve before the old one is started again.
const READY_PATIENCE: Duration = Duration::from_secs(60);
/// How long the old process may take to finish what it took before it is killed, which loses
/// nothing.
pub(crate) const END_PATIENCE: Duration = Duration::from_secs(10);

/// A replacement that is asked for.
pub(crate) struct Request {
    binary: OwnedFd,
    answer: Sender<Outcome<()>>,
}

impl Request {
    /// Asks for one through `send`; returns when the new process serves, or the old one is started
    /// again.
    pub(crate) fn make(
        whose: &str,
        binary: &Path,
        say: Progress<'_>,
        send: impl FnOnce(Request),
    ) -> Outcome<()> {
        let opened = open_binary(binary)?;
        let patience_s = READY_PATIENCE.as_secs();
        say(&format!(
            "{whose} is replaced by {}, which has {patience_s} s to serve; then the old one is \
             started again",
            binary.display()
        ));
        let (request, outcome) = Request::of(opened);
        send(request);
        let ended = || {
            let why = "it ends, or is being replaced already";
            Problem::new(Exit::Failed, format!("upgrading {whose}"), why, "try again")
        };
        outcome.recv().map_err(|_| ended())?
    }

    /// One for this binary, and where its outcome is told.
    pub(crate) fn of(binary: OwnedFd) -> (Request, Receiver<Outcome<()>>) {
        let (answer, outcome) = channel();
        (Request { binary, answer }, outcome)
    }
}

/// A replacement under way.
pub(crate) struct Upgrade {
    /// What to go back to.
    old: OwnedFd,
    answer: Sender<Outcome<()>>,
    has_started: bool,
    /// Until when the new process may take, once it is started.
    ready_until: Option<Instant>,
}

impl Upgrade {
    /// From now on the processes are of the new binary.
    pub(crate) fn begin(request: Request, binary: &mut OwnedFd) -> Upgrade {
        let old = std::mem::replace(binary, request.binary);
        Upgrade { old, answer: request.answer, has_started: false, ready_until: None }
    }

    /// The new process is started.
    pub(crate) fn started(&mut self) {
        self.has_started = true;
        self.ready_until = Some(Instant::now() + READY_PATIENCE);
    }

    /// True before [`Self::started`].
    pub(crate) fn waits_for_the_old(&self) -> bool {
        !self.has_started
    }

    /// When the new process will have had time enough.
    pub(crate) fn ready_until(&self) -> Option<Instant> {
        self.ready_until
    }

    /// True, once, when that moment has come.
    pub(crate) fn is_late(&mut self, now: Instant) -> bool {
        self.ready_until.take_if(|until| *until <= now).is_some()
    }

    /// The new process serves.
    pub(crate) fn succeeded(self) {
        // Whoever asked may have gone.
        let _ = self.answer.send(Ok(()));
    }

    /// The new process did not come up: the processes are of the old binary again.
    pub(crate) fn failed(self, whose: &str, why: &str, binary: &mut OwnedFd) {
        tracing::error!(why, "the new process of {whose} did not come up; the old one goes on");
        *binary = self.old;
        let why = format!("the new process did not come up ({why})");
        let remedy = "the old one is started again, with the memory as it was; see `holdfast \
                      status` whether it serves, and the keeper's log";
        let problem = Problem::new(Exit::Failed, format!("upgrading {whose}"), why, remedy);
        let _ = self.answer.send(Err(problem));
    }
}

/// Refuses what cannot be run, before anything is ended for it.
fn refuse_unrunnable(path: &Path, binary: &OwnedFd) -> Outcome<()> {
    let is_file = fstat(binary)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    let runs = || access(path, Access::EXEC_OK).map_err(|error| error.to_string());
    let refused = if is_file { runs() } else { Err("it is not a file".to_owned()) };
    refused.map_err(|why| {
        let what = format!("running the binary {}", path.display());
        let remedy = "nothing was changed; name a program that can be run with --binary PATH";
        Problem::new(Exit::Usage, what, why, remedy)
    })
}

/// A binary, kept open so that it can be started again after its file was replaced.
pub(crate) fn open_binary(path: &Path) -> Outcome<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| {
        let what = format!("opening the binary {}", path.display());
        Problem::new(Exit::Usage, what, error, "name it with --binary PATH")
    })?;
    refuse_unrunnable(path, &opened).map(|()| opened)
}

/// Where the program of this process is. Asked when the process begins: the kernel follows a file
/// that is given another name, and another program has its place then.
pub(crate) fn own_path() -> Outcome<PathBuf> {
    let own = std::env::current_exe().map_err(|error| {
        Problem::new(Exit::Failed, "finding the binary", error, "name it with --binary PATH")
    })?;
    // The kernel's word for a file that was replaced since.
    Ok(own.to_string_lossy().trim_end_matches(" (deleted)").into())
}

#[cfg(test)]
mod tests;
