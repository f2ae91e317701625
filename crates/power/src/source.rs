//! Where it is known how the machine is powered.
//!
//! Promise: an answer is had within its patience or not at all; nothing that was told before counts
//! as told now: an answer is as old as the question, and what is in a file as old as the look that
//! found something else there.
//! Never: trusts the clock that people set.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use holdfast_io::private;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::deadline::left;
use crate::lease::now_ms;
use crate::nut;
use crate::reading::{TEXT_BYTES_MAX, parse};
use crate::state::Reading;

/// How often is looked whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How much is kept of what a command complains of.
const COMPLAINT_BYTES_MAX: usize = 300;

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
    /// What was in the file, and which it was, when it was looked at last, and when that was.
    file: Option<(Written, u64)>,
    /// A look at the file that has not come to an end, and when it began. There is no other before
    /// it has.
    looking: Option<(Looking, u64)>,
}

/// What a source told, and since when it may have been so, in milliseconds of [`now_ms`].
pub type Told = (Reading, u64);

/// What tells one writing of a file from another.
type Written = (u64, i64, i64, u64);

/// What is found in a file, once it is.
type Looking = Receiver<io::Result<(Written, String)>>;

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
    pub fn ask(&mut self) -> Result<Option<Told>, String> {
        let (deadline, asked_ms) = (Instant::now() + self.patience, now_ms());
        let now = |reading| Some((reading, asked_ms));
        match &self.kind {
            Kind::Nut { address, ups } => nut::ask(*address, ups, deadline).map(now),
            Kind::Command(words) => run(words, deadline).and_then(|it| parse(&it)).map(now),
            Kind::File(path) => {
                let path = path.clone();
                self.look(&path, deadline, asked_ms)
            }
        }
    }

    /// What is in a file that was written since it was looked at last. What was there before may be
    /// as old as anything.
    fn look(
        &mut self,
        path: &Path,
        deadline: Instant,
        now_ms: u64,
    ) -> Result<Option<Told>, String> {
        let failed = |error: io::Error| format!("reading {}: {error}", path.display());
        let before = self.file.take();
        let (looking, begun_ms) = match self.looking.take() {
            Some(looking) => looking,
            None => (begin_to_read(path).map_err(failed)?, now_ms),
        };
        let (written, text) = match looking.recv_timeout(left(deadline)) {
            Ok(read) => read.map_err(failed)?,
            Err(_) => {
                self.looking = Some((looking, begun_ms));
                return Err(failed(io::ErrorKind::TimedOut.into()));
            }
        };
        self.file = Some((written, begun_ms));
        if !text.ends_with('\n') {
            return Err(failed(io::Error::other("its last line has no end yet")));
        }
        let since_ms = before.filter(|(before, _)| *before != written).map(|(_, at_ms)| at_ms);
        since_ms.map(|since_ms| Ok((parse(&text)?, since_ms))).transpose()
    }
}

/// Reads on a thread of its own: there are disks that do not answer.
fn begin_to_read(path: &Path) -> io::Result<Looking> {
    let (sender, read) = sync_channel(1);
    let path = path.to_owned();
    let work = move || drop(sender.send(read_file(&path)));
    Builder::new().name("power source".into()).spawn(work)?;
    Ok(read)
}

fn read_file(path: &Path) -> io::Result<(Written, String)> {
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
    command.args(arguments).current_dir("/").stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().map_err(failed)?;
    let mut complaint = Vec::new();
    let printed = read_until_end(&mut child, &mut complaint, deadline);
    let ended = end(&mut child, deadline);
    let text = printed.and_then(|text| Ok((text, ended?)));
    match text.map_err(|error| failed(error) + &told(&complaint))? {
        (text, status) if status.success() => Ok(text),
        (_, status) => Err(format!("{program}: {status}{}", told(&complaint))),
    }
}

/// The last line of what a program complains of, behind what is said of it.
fn told(complaint: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaint);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let plain = |line: &str| line.chars().filter(|it| !it.is_control()).collect::<String>();
    last.map_or_else(String::new, |line| format!(": {}", plain(line)))
}

/// What a program prints until it has ended, whoever else could still print there, and the end of
/// what it complains of.
fn read_until_end(
    child: &mut Child,
    complaint: &mut Vec<u8>,
    deadline: Instant,
) -> io::Result<String> {
    let mut out = child.stdout.take().expect("it is piped");
    let mut complaints = child.stderr.take().expect("it is piped");
    fcntl_setfl(&out, OFlags::NONBLOCK)?;
    fcntl_setfl(&complaints, OFlags::NONBLOCK)?;
    let mut printed = Vec::new();
    loop {
        let has_ended = has_ended(child)?;
        read_now(&mut complaints, complaint)?;
        complaint.drain(..complaint.len().saturating_sub(COMPLAINT_BYTES_MAX));
        read_now(&mut out, &mut printed)?;
        if printed.len() >= TEXT_BYTES_MAX {
            return Err(too_long());
        }
        if has_ended {
            return Ok(lossy(printed));
        }
        if left(deadline).is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// What is there by now, if it is not too much.
fn read_now(pipe: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    match pipe.take(TEXT_BYTES_MAX as u64).read_to_end(bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        read => read.map(drop),
    }
}

/// What is no text stands in variables that nobody asks for, or is no status.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
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
    let mut bytes = Vec::new();
    let read = from.take(TEXT_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    if read < TEXT_BYTES_MAX { Ok(lossy(bytes)) } else { Err(too_long()) }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is too long to be a reading")
}

#[cfg(test)]
mod tests;
