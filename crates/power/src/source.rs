//! Where it is known how the machine is powered.
//!
//! Promise: an answer is had within its patience or not at all; nothing that was told before counts
//! as told now.
//! Never: trusts the clock that people set.

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::nut;
use crate::reading::{TEXT_BYTES_MAX, parse};
use crate::state::Reading;

/// How often is looked whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Who tells how the machine is powered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `upsd` of NUT.
    Nut {
        /// Where it listens.
        address: SocketAddr,
        /// What it calls the UPS.
        ups: String,
    },
    /// A program and its arguments, which prints a reading whenever it is run.
    Command(Vec<String>),
    /// A file in which somebody writes a reading again and again.
    File(PathBuf),
}

/// One of them, and what it told.
#[derive(Debug)]
pub struct Source {
    kind: Kind,
    patience: Duration,
    /// What was in the file, and which it was, when it was looked at last.
    file: Option<Written>,
}

/// What tells one writing of a file from another.
type Written = (u64, i64, i64, u64);

impl Source {
    /// Asks for no longer than `patience` at a time.
    #[must_use]
    pub fn new(kind: Kind, patience: Duration) -> Source {
        Source { kind, patience, file: None }
    }

    /// What the source tells now; nothing if it has nothing new to tell.
    ///
    /// # Errors
    /// Why it does not, for people.
    pub fn ask(&mut self) -> Result<Option<Reading>, String> {
        let deadline = Instant::now() + self.patience;
        match &self.kind {
            Kind::Nut { address, ups } => nut::ask(*address, ups, deadline).map(Some),
            Kind::Command(words) => run(words, deadline).and_then(|it| parse(&it)).map(Some),
            Kind::File(path) => {
                let path = path.clone();
                self.look(path, deadline)
            }
        }
    }

    /// What is in a file that was written since it was looked at last. What was there before may be
    /// as old as anything.
    fn look(&mut self, path: PathBuf, deadline: Instant) -> Result<Option<Reading>, String> {
        let shown = path.display().to_string();
        let before = self.file.take();
        let read = Aside::begin(move || read(&path)).and_then(|it| it.wait(deadline));
        let (written, text) = read.map_err(|error| format!("reading {shown}: {error}"))?;
        self.file = Some(written);
        let is_new = before.is_some_and(|before| before != written);
        is_new.then(|| parse(&text)).transpose()
    }
}

/// Work on a thread of its own: there are disks that do not answer, and pipes that somebody holds.
struct Aside<T>(Receiver<io::Result<T>>);

impl<T: Send + 'static> Aside<T> {
    fn begin(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<Aside<T>> {
        let (sender, done) = sync_channel(1);
        let work = move || drop(sender.send(work()));
        Builder::new().name("power source".into()).spawn(work)?;
        Ok(Aside(done))
    }

    fn wait(self, deadline: Instant) -> io::Result<T> {
        let patience = deadline.saturating_duration_since(Instant::now());
        self.0.recv_timeout(patience).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

fn read(path: &Path) -> io::Result<(Written, String)> {
    // A pipe in its place would be waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    let written = (found.ino(), found.mtime(), found.mtime_nsec(), found.size());
    Ok((written, text_of(file)?))
}

/// Runs a program to its end. One that takes too long is killed, with all that it has started.
fn run(words: &[String], deadline: Instant) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("it has no name")?;
    let failed = |error: io::Error| format!("running {program}: {error}");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.process_group(0).spawn().map_err(failed)?;
    let pipe = child.stdout.take().expect("it is piped");
    let printed = Aside::begin(move || text_of(pipe));
    // What cannot be read is not waited for.
    let patience = if printed.is_ok() { deadline } else { Instant::now() };
    let ended = wait(&mut child, patience);
    let printed = printed.and_then(|it| it.wait(deadline));
    let text = ended.and_then(|status| Ok((status, printed?)));
    match text.map_err(failed)? {
        (status, text) if status.success() => Ok(text),
        (status, _) => Err(format!("{program}: {status}")),
    }
}

/// Waits for the end of a program, and ends whatever it has started by then: that may hold what it
/// prints to.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<ExitStatus> {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process has a number");
    // It is not taken notice of before all of its group are gone: its number stays its own.
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let is_over = || Instant::now() >= deadline;
    while waitid(WaitId::Pid(pid), look)?.is_none() && !is_over() {
        thread::sleep(LOOK_EVERY);
    }
    let has_ended = waitid(WaitId::Pid(pid), look)?.is_some();
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait()?;
    if has_ended { Ok(status) } else { Err(io::ErrorKind::TimedOut.into()) }
}

/// The text of whatever can be read, which is not longer than any that is meant.
pub(crate) fn text_of(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let read = from.take(TEXT_BYTES_MAX as u64).read_to_string(&mut text)?;
    match read < TEXT_BYTES_MAX {
        true => Ok(text),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long to be a reading")),
    }
}

#[cfg(test)]
mod tests;
