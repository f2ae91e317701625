//! Where it is known how the machine is powered.
//!
//! Promise: an answer is had within its patience or not at all; nothing that was told before counts
//! as told now.
//! Never: trusts the clock that people set.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use holdfast_io::private;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::deadline::left;
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
    /// A look at the file that has not come to an end. There is no other before it has.
    looking: Option<Receiver<io::Result<(Written, String)>>>,
}

/// What tells one writing of a file from another.
type Written = (u64, i64, i64, u64);

impl Source {
    /// Asks for no longer than `patience` at a time.
    #[must_use]
    pub fn new(kind: Kind, patience: Duration) -> Source {
        Source { kind, patience, file: None, looking: None }
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
                self.look(&path, deadline)
            }
        }
    }

    /// What is in a file that was written since it was looked at last. What was there before may be
    /// as old as anything.
    fn look(&mut self, path: &Path, deadline: Instant) -> Result<Option<Reading>, String> {
        let failed = |error: io::Error| format!("reading {}: {error}", path.display());
        let before = self.file.take();
        let looking = match self.looking.take() {
            Some(looking) => looking,
            None => begin_to_read(path).map_err(failed)?,
        };
        let (written, text) = match looking.recv_timeout(left(deadline)) {
            Ok(read) => read.map_err(failed)?,
            Err(_) => {
                self.looking = Some(looking);
                return Err(failed(io::ErrorKind::TimedOut.into()));
            }
        };
        self.file = Some(written);
        if !text.ends_with('\n') {
            return Err(failed(io::Error::other("its last line has no end yet")));
        }
        let is_new = before.is_some_and(|before| before != written);
        is_new.then(|| parse(&text)).transpose()
    }
}

/// Reads on a thread of its own: there are disks that do not answer.
fn begin_to_read(path: &Path) -> io::Result<Receiver<io::Result<(Written, String)>>> {
    let (sender, read) = sync_channel(1);
    let path = path.to_owned();
    let work = move || drop(sender.send(read_now(&path)));
    Builder::new().name("power source".into()).spawn(work)?;
    Ok(read)
}

fn read_now(path: &Path) -> io::Result<(Written, String)> {
    let file = private::open(path, false)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let written = (found.ino(), found.mtime(), found.mtime_nsec(), found.size());
    Ok((written, text_of(file)?))
}

/// Runs a program to its end, or for as long as it may take; then all that it has started is ended.
fn run(words: &[String], deadline: Instant) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("it has no name")?;
    let failed = |error: io::Error| format!("running {program}: {error}");
    // Whoever could write it would run what he likes, as this user.
    let program_itself = std::fs::canonicalize(program).map_err(failed)?;
    drop(private::open(&program_itself, false).map_err(failed)?);
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().map_err(failed)?;
    let pipe = child.stdout.take().expect("it is piped");
    let printed = read_until_end(pipe, &child, deadline);
    let ended = end(&mut child, deadline);
    let text = printed.and_then(|text| Ok((text, ended?)));
    match text.map_err(failed)? {
        (text, status) if status.success() => Ok(text),
        (_, status) => Err(format!("{program}: {status}")),
    }
}

/// What a program prints until it has ended, whoever else could still print there.
fn read_until_end(mut pipe: ChildStdout, child: &Child, deadline: Instant) -> io::Result<String> {
    fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
    let mut bytes = Vec::new();
    loop {
        let has_ended = has_ended(child)?;
        match (&mut pipe).take(TEXT_BYTES_MAX as u64).read_to_end(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => drop(read?),
        }
        if bytes.len() >= TEXT_BYTES_MAX {
            return Err(too_long());
        }
        if has_ended {
            return String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into());
        }
        if left(deadline).is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn has_ended(child: &Child) -> io::Result<bool> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(pid_of(child)), look)?.is_some())
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).expect("a process has a number")
}

/// Waits for the end of a program, and ends whatever it has started by then.
fn end(child: &mut Child, deadline: Instant) -> io::Result<ExitStatus> {
    // It is not taken notice of before all of its group are gone: its number stays its own.
    while !has_ended(child)? && !left(deadline).is_zero() {
        thread::sleep(LOOK_EVERY);
    }
    let in_time = has_ended(child)?;
    let _ = kill_process_group(pid_of(child), Signal::KILL);
    let status = child.wait()?;
    if in_time { Ok(status) } else { Err(io::ErrorKind::TimedOut.into()) }
}

/// The text of whatever can be read, which is not longer than any that is meant.
pub(crate) fn text_of(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let read = from.take(TEXT_BYTES_MAX as u64).read_to_string(&mut text)?;
    if read < TEXT_BYTES_MAX { Ok(text) } else { Err(too_long()) }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is too long to be a reading")
}

#[cfg(test)]
mod tests;
