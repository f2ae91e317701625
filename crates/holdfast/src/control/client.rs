//! Asking the keeper.
//!
//! Promise: "no keeper runs" is told apart from every other failure (exit code 4).
//! Never: waits for a keeper to come up.

use super::{Answer, Command, Line, PROTOCOL, Request};
use crate::exit::Exit;
use crate::problem::{Outcome, Problem};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const REMEDY: &str = "see the keeper's log";

/// Sends one request and waits for the answer, however long it takes.
pub(crate) fn ask(
    socket: &Path,
    command: Command,
    progress: &mut dyn FnMut(&str),
) -> Outcome<Answer> {
    let what = format!("asking the keeper at {}", socket.display());
    let mut stream = UnixStream::connect(socket).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Problem::new(
            Exit::NotRunning,
            what.clone(),
            "no keeper is running",
            "start it with `holdfast serve`",
        ),
        _ => Problem::new(Exit::Failed, what.clone(), error, "run as the keeper's user"),
    })?;
    let broken = |error: io::Error| Problem::new(Exit::Failed, what.clone(), error, REMEDY);
    let mut line = serde_json::to_vec(&Request { protocol: PROTOCOL, command })
        .map_err(|error| broken(error.into()))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(broken)?;
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(broken)?;
        match serde_json::from_str(&line).map_err(|error| broken(error.into()))? {
            Line::Progress(text) => progress(&text),
            Line::Done(answer) => return Ok(answer),
            Line::Failed(problem) => return Err(problem),
        }
    }
    Err(Problem::new(Exit::Failed, what, "it ended before it answered", REMEDY))
}

/// True if a keeper accepts connections there.
pub(crate) fn is_answering(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}
