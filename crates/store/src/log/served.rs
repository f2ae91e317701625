//! The log of a store in the server.
//!
//! Byte table: FORMAT.md, "Served".
//!
//! Promise: the log is one store's and has one process at a time, so nothing of a process that died
//! comes behind what the next one has read; which log it is stands in the store's directory, and
//! one that was made anew in its place is refused.
//! Never: drains it, or has its ring; the server does.

use std::error::Error;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_client::protocol::{NAME_BYTES_MAX, Status};
use holdfast_client::{ConnectError, LogClient};
use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenHow};
use holdfast_log::{CommitLog, Lsn, words};

use crate::error::OpenError;

/// The file that says which log it is, in the directory where segments would be.
const FILE: &str = "served";
const FILE_MODE: u32 = 0o644;
/// "HFSS".
const MAGIC: u32 = 0x5353_4648;
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 32;
const OWNER_BYTES: usize = HEAD_BYTES + NAME_BYTES_MAX;

/// The words of the log that say whose it is, for as long as its region lives.
const OWNER_WORDS: [usize; 2] = [words::READER.start, words::READER.start + 1];

/// How long the server may take to see that an earlier process is gone.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) identity: [u8; 16],
    /// Of the log, as the server has it.
    pub(crate) name: String,
}

impl Owner {
    /// None if there is no such file, or its making was cut short.
    pub(crate) fn read(files: &dyn Files) -> Option<Owner> {
        let mut bytes = [0; OWNER_BYTES];
        let file = files.open(Path::new(FILE), OpenHow::default()).ok()?;
        file.read_full_at(&mut bytes, 0).ok()?;
        Owner::parse(&bytes)
    }

    fn parse(bytes: &[u8; OWNER_BYTES]) -> Option<Owner> {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if word(0) != crc32c(MAGIC, &bytes[4..]) || word(4) != MAGIC || half(8) != VERSION {
            return None;
        }
        let name = bytes[HEAD_BYTES..].get(..half(10).into())?;
        let identity = std::array::from_fn(|byte| bytes[16 + byte]);
        Some(Owner { identity, name: str::from_utf8(name).ok()?.to_owned() })
    }

    fn encode(&self) -> [u8; OWNER_BYTES] {
        let mut bytes = [0; OWNER_BYTES];
        bytes[4..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(self.name.len() as u16).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.identity);
        bytes[HEAD_BYTES..][..self.name.len()].copy_from_slice(self.name.as_bytes());
        let check = crc32c(MAGIC, &bytes[4..]);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// It survives a power cut when this returns.
    fn write(&self, files: &dyn Files) -> io::Result<()> {
        let how = OpenHow { write: true, create_mode: Some(FILE_MODE), ..OpenHow::default() };
        let file = files.open(Path::new(FILE), how)?;
        file.write_all_at(&self.encode(), 0)?;
        file.sync_data()?;
        files.sync_dir(Path::new(""))
    }
}

/// Takes a log of the server's that nobody has used for a new store. Goes on where that was cut
/// short.
pub(crate) fn create(
    files: &dyn Files,
    identity: [u8; 16],
    socket: &Path,
    name: &str,
) -> Result<(), OpenError> {
    let log = connect_alone(socket, name)?;
    refuse_if_used(&log, identity)?;
    let owner = Owner { identity, name: name.to_owned() };
    // First: a log that is taken for a store that nobody knows could not be used by any.
    owner.write(files).map_err(OpenError::Io)?;
    claim(&log, identity)?;
    begin(&log, identity)
}

/// Opens the log of a store.
pub(crate) fn open(
    files: &dyn Files,
    identity: [u8; 16],
    socket: &Path,
    name: &str,
) -> Result<LogClient, OpenError> {
    let owner = Owner { identity, name: name.to_owned() };
    if Owner::read(files) != Some(owner) {
        return Err(OpenError::OtherLog);
    }
    let log = connect_alone(socket, name)?;
    refuse_if_remade(&log)?;
    claim(&log, identity)?;
    Ok(log)
}

/// A connection to a log that has no other as long as this one lives. A user who finds no second
/// place is no proof: the log may keep one for another user.
fn connect_alone(socket: &Path, name: &str) -> Result<LogClient, OpenError> {
    let log = connect(socket, name).map_err(OpenError::Server)?;
    if log.clients_max() == 1 { Ok(log) } else { Err(OpenError::SharedLog) }
}

/// Waits until the server has seen that the process before is gone.
fn connect(socket: &Path, name: &str) -> Result<LogClient, ConnectError> {
    let begun = Instant::now();
    loop {
        match LogClient::connect(socket, name) {
            Err(error) if passes(&error) && begun.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            connected => return connected,
        }
    }
}

/// Whether it may be over soon: somebody else has the place, or the server is being replaced.
fn passes(error: &ConnectError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match error {
        ConnectError::Refused(status) => *status == Status::TooManyClients,
        ConnectError::Unreachable(error) => {
            matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
        }
        _ => false,
    }
}

/// A store begins in a log that has nothing in it and is nobody's.
fn refuse_if_used(log: &LogClient, identity: [u8; 16]) -> Result<(), OpenError> {
    let (marks, mut is_used) = (log.marks(), false);
    for (word, wanted) in owner_words(identity) {
        let found = log.word(word).map_err(of_log)?;
        is_used |= found != 0 && found != wanted;
    }
    log.read(marks.released, marks.tail, &mut |frame| {
        // What an attempt left that was cut short.
        is_used |= frame.payload != identity;
        !is_used
    })
    .map_err(of_log)?;
    if is_used { Err(OpenError::TakenLog) } else { Ok(()) }
}

/// Has a frame released, whose payload is the store's identity. From then on the log is told from
/// any that is made anew under its name, also by who has nothing else in it.
fn begin(log: &LogClient, identity: [u8; 16]) -> Result<(), OpenError> {
    let end = log.append(1, &[&identity]).map_err(of_log)?.end;
    log.commit(end).map_err(of_log)?;
    log.mark(end).map_err(of_log)?;
    log.commit(log.marks().tail).map_err(of_log)?;
    log.release(end);
    Ok(())
}

/// Nothing was ever released of a log that is new, and something of that of each store.
fn refuse_if_remade(log: &LogClient) -> Result<(), OpenError> {
    if log.marks().released == Lsn::ZERO { Err(OpenError::RemadeLog) } else { Ok(()) }
}

/// The words that say in a log whose it is, and what they say.
fn owner_words(identity: [u8; 16]) -> impl Iterator<Item = (usize, u64)> {
    let (halves, _) = identity.as_chunks::<8>();
    let halves = [0, 1].map(|half| u64::from_le_bytes(halves[half]));
    OWNER_WORDS.into_iter().zip(halves)
}

/// Says in the log whose it is, unless it is somebody else's.
fn claim(log: &LogClient, identity: [u8; 16]) -> Result<(), OpenError> {
    for (word, wanted) in owner_words(identity) {
        let found = log.word(word).map_err(of_log)?;
        // A region that is new has zeros, and one whose claim was cut short.
        if found != 0 && found != wanted {
            return Err(OpenError::TakenLog);
        }
        log.set_word(word, wanted).map_err(of_log)?;
    }
    Ok(())
}

fn of_log(error: impl Error + Send + Sync + 'static) -> OpenError {
    OpenError::Io(io::Error::other(error))
}

#[cfg(test)]
mod tests;
