//! `upsd` of the Network UPS Tools, asked for the two variables that make a reading.
//!
//! Promise: a connection a question, ended at its deadline whatever arrives until then; an error
//! that the server names is named.
//! Never: logs in, or changes anything.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::deadline;
use crate::reading::{self, TEXT_BYTES_MAX};
use crate::state::Reading;

/// What `upsd` says of a variable that the UPS does not have.
const UNSUPPORTED: &str = "VAR-NOT-SUPPORTED";

/// What `upsd` tells of a UPS.
pub(crate) fn ask(address: SocketAddr, ups: &str, deadline: Instant) -> Result<Reading, String> {
    let failed = |error: io::Error| format!("asking upsd at {address}: {error}");
    let mut link = Link::open(address, deadline).map_err(failed)?;
    let mut variable = |name: &str| link.variable(ups, name).map_err(failed);
    let status = variable("ups.status")?.map_err(|said| refused(address, ups, &said))?;
    let runtime = match variable("battery.runtime")? {
        Ok(runtime) => Some(runtime),
        Err(said) if said == UNSUPPORTED => None,
        Err(said) => return Err(refused(address, ups, &said)),
    };
    reading::of(&status, runtime.as_deref())
}

fn refused(address: SocketAddr, ups: &str, said: &str) -> String {
    match said {
        "DATA-STALE" => format!("upsd at {address} hears nothing from {ups} any more"),
        "UNKNOWN-UPS" => format!("upsd at {address} has no UPS called {ups}"),
        "DRIVER-NOT-CONNECTED" => format!("upsd at {address} has no driver for {ups}"),
        said => format!("upsd at {address} says {said:?} of {ups}"),
    }
}

/// A connection.
struct Link {
    stream: TcpStream,
    deadline: Instant,
    /// What has arrived and was not asked for yet.
    arrived: Vec<u8>,
}

impl Link {
    fn open(address: SocketAddr, deadline: Instant) -> io::Result<Link> {
        let stream = TcpStream::connect_timeout(&address, left(deadline)?)?;
        Ok(Link { stream, deadline, arrived: Vec::new() })
    }

    /// The value of a variable, or the word with which it is refused.
    fn variable(&mut self, ups: &str, name: &str) -> io::Result<Result<String, String>> {
        self.stream.set_write_timeout(Some(left(self.deadline)?))?;
        self.stream.write_all(format!("GET VAR {ups} {name}\n").as_bytes())?;
        let line = self.line()?;
        if let Some(said) = line.strip_prefix("ERR ") {
            return Ok(Err(said.split(' ').next().unwrap_or_default().to_owned()));
        }
        let value = line.strip_prefix(&format!("VAR {ups} {name} \""));
        let value = value.and_then(|it| it.strip_suffix('"')).map(unescaped);
        let garbled = || io::Error::new(io::ErrorKind::InvalidData, "its answer is not NUT's");
        value.map(Ok).ok_or_else(garbled)
    }

    /// The next line, without its end.
    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.arrived.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.arrived.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
            }
            if self.arrived.len() >= TEXT_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its line has no end"));
            }
            self.stream.set_read_timeout(Some(left(self.deadline)?))?;
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes).map_err(as_timed_out)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.arrived.extend_from_slice(&bytes[..read]),
            }
        }
    }
}

/// `upsd` puts a backslash before quotation marks and backslashes.
fn unescaped(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            character => plain.push(character),
        }
    }
    plain
}

/// What is left until the deadline, if anything is.
fn left(until: Instant) -> io::Result<Duration> {
    let left = deadline::left(until);
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A socket whose time is over says that there is nothing yet.
fn as_timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests;
