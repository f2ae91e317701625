//! Asking the keeper.
//!
//! Promise: "no keeper runs" (exit code 4) and "the keeper does not answer" (exit code 8) are told
//! apart from every other failure, and from each other; a question about the status waits no longer
//! than [`SILENCE`], and no command waits for a keeper that was stopped.
//! Never: waits for a keeper to come up.

use super::connect::{RETRY_EVERY, SILENCE, connect, listens};
use super::protocol::{Answer, Command, Line, PROTOCOL, Request};
use super::whose_file::told;
use crate::pulse::{why_silent, why_stopped};
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::lock::{in_the_place, keeper_with};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, pidfd_open};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const REMEDY: &str = "see the keeper's log";

/// How long a keeper whose connections have ended may take to have ended itself.
const ENDING: Duration = Duration::from_secs(2);

/// How long a keeper may need to listen again where its socket was taken away.
const AGAIN: Duration = Duration::from_secs(2);

/// Sends one request to the keeper of this configuration and waits for the answer: to a question
/// about the status for no longer than a keeper may be silent, to what may take longer for as long
/// as the keeper runs.
pub fn ask(config: &Config, command: Command, progress: &mut dyn FnMut(&str)) -> Outcome<Answer> {
    Asking::begin(config, command)?.answer(progress)
}

/// A request that was sent.
pub struct Asking {
    what: String,
    is_bounded: bool,
    process: KeeperProcess,
    keeper: Option<u32>,
    lines: Lines,
}

impl Asking {
    /// Sends a request.
    pub fn begin(config: &Config, command: Command) -> Outcome<Asking> {
        let socket = &*config.keeper.socket;
        let configuration = config.file.as_deref().map(told);
        let what = format!("asking the keeper at {}", socket.display());
        let stream = connect_to_keeper(socket);
        let stream = stream.map_err(|error| unreached(&what, socket, &error))?;
        let process = KeeperProcess::behind(socket, &stream);
        let keeper = socket_peercred(&stream).ok();
        let keeper = keeper.map(|peer| peer.pid.as_raw_nonzero().get().unsigned_abs());
        let is_bounded = command == Command::Status;
        let lines = Lines { reader: BufReader::new(stream), begun: Vec::new() };
        let mut asking = Asking { what, is_bounded, process, keeper, lines };
        let sent = asking.send(&Request { protocol: PROTOCOL, command, configuration });
        sent.map_err(|error| asking.broken(error))?;
        Ok(asking)
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let stream = self.lines.reader.get_mut();
        stream.set_read_timeout(Some(SILENCE))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)
    }

    /// Waits for the answer: to a question about the status for no longer than a keeper may be
    /// silent, to what may take longer for as long as the keeper runs.
    pub fn answer(&mut self, progress: &mut dyn FnMut(&str)) -> Outcome<Answer> {
        let is_over = |why: Option<&str>| self.is_bounded || why.is_some();
        loop {
            let stopped = || self.keeper.and_then(why_stopped);
            match self.lines.next().map_err(|error| self.broken(error))? {
                Next::Line(line) => {
                    match serde_json::from_slice(&line).map_err(|it| self.broken(it.into()))? {
                        Line::Progress(text) => progress(&text),
                        Line::Done(answer) => return Ok(answer),
                        Line::Failed(problem) => return Err(problem),
                    }
                }
                Next::Nothing if is_over(stopped().as_deref()) => {
                    return Err(silent(&self.what, self.keeper));
                }
                Next::Nothing => {
                    progress(&format!("the keeper works on it, or waits{}", of(self.keeper)));
                }
                Next::End => return Err(self.broken(ErrorKind::UnexpectedEof.into())),
            }
        }
    }

    /// What a keeper that was asked to end, and has, said of that last. One of an earlier version
    /// says nothing, nor does one that was killed.
    pub fn last_word(mut self) -> Option<Outcome<()>> {
        let Ok(Next::Line(line)) = self.lines.next() else { return None };
        match serde_json::from_slice(&line).ok()? {
            Line::Failed(problem) => Some(Err(problem)),
            _ => Some(Ok(())),
        }
    }

    fn broken(&self, error: io::Error) -> Problem {
        match is_an_end(&error) && self.process.has_ended_within(ENDING) {
            true => ended(&self.what),
            false => Problem::new(Exit::Failed, self.what.clone(), error, REMEDY),
        }
    }
}

/// Whether a connection that fails so may be that of a keeper that has ended.
fn is_an_end(error: &io::Error) -> bool {
    let ends = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe, ErrorKind::UnexpectedEof];
    ends.contains(&error.kind())
}

/// A keeper that has ended is none.
fn ended(what: &str) -> Problem {
    let why = "the keeper ended before it answered";
    Problem::new(Exit::NotRunning, what, why, "start it with `holdfast serve`, and ask again")
}

/// What comes from the keeper within [`SILENCE`].
enum Next {
    Line(Vec<u8>),
    Nothing,
    End,
}

/// The keeper's lines; one may come in parts.
struct Lines {
    reader: BufReader<UnixStream>,
    begun: Vec<u8>,
}

impl Lines {
    fn next(&mut self) -> io::Result<Next> {
        match self.reader.read_until(b'\n', &mut self.begun) {
            Ok(_) if self.begun.is_empty() => Ok(Next::End),
            Ok(_) => Ok(Next::Line(std::mem::take(&mut self.begun))),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Next::Nothing),
            Err(error) => Err(error),
        }
    }
}

/// [`connect`], and a keeper that lives is given the time to listen again where its socket was
/// taken away.
fn connect_to_keeper(socket: &Path) -> io::Result<UnixStream> {
    let begun = Instant::now();
    loop {
        match connect(socket) {
            Err(error) if is_absent(&error) && begun.elapsed() < AGAIN => {
                if keeper_with(socket).is_none() {
                    return Err(error);
                }
                std::thread::sleep(RETRY_EVERY);
            }
            connected => return connected,
        }
    }
}

/// Whether nobody listens.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

fn unreached(what: &str, socket: &Path, error: &io::Error) -> Problem {
    match error.kind() {
        _ if is_absent(error) => match keeper_with(socket) {
            Some(pid) => unheard(what, socket, pid),
            None => {
                let remedy = "start it with `holdfast serve`";
                Problem::new(Exit::NotRunning, what, "no keeper is running", remedy)
            }
        },
        ErrorKind::TimedOut => silent(what, None),
        ErrorKind::Unsupported => {
            Problem::new(Exit::Failed, what, error, "ask from the keeper's own, or one above it")
        }
        _ => Problem::new(Exit::Failed, what, error, "run as the keeper's user"),
    }
}

/// A keeper that lives, and does not listen.
fn unheard(what: &str, socket: &Path, pid: u32) -> Problem {
    let lives = format!("the keeper (process {pid}) is there");
    if let Some((why, remedy)) = in_the_place(socket) {
        let remedy =
            format!("{remedy}; or `kill -TERM {pid}` has the keeper give everything back and end");
        return Problem::new(Exit::NoAnswer, what, format!("{lives}, and {why}"), remedy);
    }
    let why = format!("{lives}, and does not listen");
    let remedy = format!(
        "one that starts or stands by listens once it serves; `kill -TERM {pid}` has it give \
         everything back and end"
    );
    Problem::new(Exit::NoAnswer, what, why, remedy)
}

/// A keeper that is there and says nothing.
fn silent(what: &str, keeper: Option<u32>) -> Problem {
    let why = keeper.map_or_else(|| "too many wait for it".to_owned(), why_silent);
    let text =
        format!("the keeper{} has said nothing for {} s: {why}", of(keeper), SILENCE.as_secs());
    Problem::new(Exit::NoAnswer, what, text, "volumes are served as long as their front ends are")
}

/// Which process it is, if that is known.
fn of(keeper: Option<u32>) -> String {
    keeper.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

/// The keeper behind a socket, known until it has ended.
pub struct KeeperProcess {
    socket: PathBuf,
    /// Missing where its number means nothing here.
    process: Option<OwnedFd>,
}

impl KeeperProcess {
    /// Whoever listens there now.
    pub fn at(socket: &Path) -> KeeperProcess {
        match connect(socket) {
            Ok(stream) => KeeperProcess::behind(socket, &stream),
            Err(_) => KeeperProcess { socket: socket.to_owned(), process: None },
        }
    }

    /// Whoever has the other end of a connection to that socket.
    fn behind(socket: &Path, stream: &UnixStream) -> KeeperProcess {
        let peer = socket_peercred(stream).ok();
        let process = peer.and_then(|peer| pidfd_open(peer.pid, PidfdFlags::empty()).ok());
        KeeperProcess { socket: socket.to_owned(), process }
    }

    /// Waits that long; true as soon as the keeper has ended.
    pub fn has_ended_within(&self, patience: Duration) -> bool {
        let begun = Instant::now();
        loop {
            if self.has_ended() || begun.elapsed() >= patience {
                return self.has_ended();
            }
            std::thread::sleep(RETRY_EVERY);
        }
    }

    fn has_ended(&self) -> bool {
        let Some(process) = &self.process else { return !is_there(&self.socket) };
        let mut ended = [PollFd::new(process, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ended| ended > 0)
    }
}

/// True if a keeper is there, whether or not it answers, or can be asked at all.
pub fn is_there(socket: &Path) -> bool {
    listens(socket) || keeper_with(socket).is_some()
}

/// Whether a keeper is there that runs, does not listen yet, and may come to it by itself.
pub fn is_starting(socket: &Path) -> bool {
    let runs = |pid: u32| why_stopped(pid).is_none() && in_the_place(socket).is_none();
    keeper_with(socket).is_some_and(runs) && !listens(socket)
}

#[cfg(test)]
mod tests;
