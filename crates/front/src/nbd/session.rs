//! A connection that is not being served, and what another process has to know to serve it on.
//!
//! Promise: no byte of a connection is lost or sent twice on its way from one process to another;
//! bytes that are no session are a fault.
//! Never: reads or writes the socket.
//!
//! A session's bytes (numbers are little-endian):
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | "NBDS" |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | part: 0 negotiation, 1 transmission |
//! | 6 | | the part |
//! | | 4 + n | what was received and not used |
//! | | 4 + n | what was not sent |
//!
//! Negotiation: 0 stage, 1 flags (1 no zeroes, 2 structured, 4 context), 2 bytes to skip, 6 the
//! context's export. Transmission: 0 flags (2 structured, 4 context, 8 read-only, 16 payload),
//! 1 size of the export, 9 the export's name, then the payload: 0 cookie, 8 offset, 16 bytes left,
//! 20 whether it is to be durable, 21 refusal (0 none). A name is 4 bytes of length and the name.

#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;

use super::agreed::{Agreed, Stage};
use super::exchange::State;
use super::payload::{Payload, Refusal};

const MAGIC: [u8; 4] = *b"NBDS";
const VERSION: u8 = 1;

const NO_ZEROES: u8 = 1 << 0;
const STRUCTURED: u8 = 1 << 1;
const CONTEXT: u8 = 1 << 2;
const READ_ONLY: u8 = 1 << 3;
const PAYLOAD: u8 = 1 << 4;

/// One connection between two processes that serve it.
#[derive(Debug)]
pub struct Session {
    pub(crate) socket: OwnedFd,
    pub(crate) state: State,
    pub(crate) unread: Vec<u8>,
    pub(crate) unsent: Vec<u8>,
}

/// Why bytes are not a session that this version can go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionFault {
    /// They do not start as a session does.
    #[error("not a session")]
    Magic,
    /// Another version wrote them.
    #[error("a session of version {0}")]
    Version(u8),
    /// They end too early, go on too long, or say what no session says.
    #[error("a malformed session")]
    Malformed,
}

impl Session {
    /// A connection on which nothing was said yet.
    pub fn new(socket: OwnedFd) -> Session {
        let state = State::Negotiation {
            stage: Stage::Greeting,
            no_zeroes: false,
            structured: false,
            context: None,
            skip_bytes: 0,
        };
        Session { socket, state, unread: Vec::new(), unsent: Vec::new() }
    }

    /// Whether its client has come to its first request.
    pub(crate) fn has_chosen(&self) -> bool {
        matches!(self.state, State::Transmission { .. })
    }

    /// The descriptor, and the bytes to hand over with it.
    pub fn into_parts(self) -> (OwnedFd, Vec<u8>) {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        put_state(&mut bytes, &self.state);
        put_counted(&mut bytes, &self.unread);
        put_counted(&mut bytes, &self.unsent);
        (self.socket, bytes)
    }

    /// Takes over what [`Session::into_parts`] gave, in this process or another. A fault closes the
    /// connection: nobody could tell any more what was said on it.
    pub fn adopt(socket: OwnedFd, bytes: &[u8]) -> Result<Session, SessionFault> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(SessionFault::Magic)?;
        let (version, rest) = rest.split_first().ok_or(SessionFault::Malformed)?;
        if *version != VERSION {
            return Err(SessionFault::Version(*version));
        }
        let mut taken = Take(rest);
        let parts = (|| Some((state(&mut taken)?, taken.counted()?, taken.counted()?)))();
        let (state, unread, unsent) = parts.ok_or(SessionFault::Malformed)?;
        if !taken.0.is_empty() {
            return Err(SessionFault::Malformed);
        }
        Ok(Session { socket, state, unread, unsent })
    }
}

fn put_state(bytes: &mut Vec<u8>, state: &State) {
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    match state {
        State::Negotiation { stage, no_zeroes, structured, context, skip_bytes } => {
            let flags = flag(*no_zeroes, NO_ZEROES) | flag(*structured, STRUCTURED);
            bytes.extend([0, *stage as u8, flags | flag(context.is_some(), CONTEXT)]);
            bytes.extend(skip_bytes.to_le_bytes());
            if let Some(name) = context {
                put_counted(bytes, name.as_bytes());
            }
        }
        State::Transmission { export, size_bytes, read_only, agreed, payload } => {
            let flags = flag(agreed.structured, STRUCTURED) | flag(agreed.allocation, CONTEXT);
            let flags = flags | flag(*read_only, READ_ONLY) | flag(payload.is_some(), PAYLOAD);
            bytes.extend([1, flags]);
            bytes.extend(size_bytes.to_le_bytes());
            put_counted(bytes, export.as_bytes());
            if let Some(payload) = payload {
                put_payload(bytes, payload);
            }
        }
    }
}

fn put_payload(bytes: &mut Vec<u8>, payload: &Payload) {
    bytes.extend(payload.cookie.to_le_bytes());
    bytes.extend(payload.offset.to_le_bytes());
    bytes.extend(payload.left_bytes.to_le_bytes());
    let place = |refusal| Refusal::ALL.iter().position(|&one| one == refusal);
    let refusal = payload.refusal.and_then(place).map_or(0, |place| place as u8 + 1);
    bytes.extend([u8::from(payload.is_durable), refusal]);
}

fn put_counted(bytes: &mut Vec<u8>, counted: &[u8]) {
    bytes.extend((counted.len() as u32).to_le_bytes());
    bytes.extend(counted);
}

fn state(taken: &mut Take<'_>) -> Option<State> {
    match taken.byte()? {
        0 => {
            let stages = [Stage::Greeting, Stage::Flags, Stage::Options];
            let stage = *stages.get(usize::from(taken.byte()?))?;
            let flags = taken.byte()?;
            let skip_bytes = taken.u32()?;
            let context = if flags & CONTEXT != 0 { Some(taken.name()?) } else { None };
            let no_zeroes = flags & NO_ZEROES != 0;
            let structured = flags & STRUCTURED != 0;
            Some(State::Negotiation { stage, no_zeroes, structured, context, skip_bytes })
        }
        1 => {
            let flags = taken.byte()?;
            let size_bytes = taken.u64()?;
            let export = taken.name()?;
            let payload = if flags & PAYLOAD != 0 { Some(payload(taken)?) } else { None };
            let agreed =
                Agreed { structured: flags & STRUCTURED != 0, allocation: flags & CONTEXT != 0 };
            let read_only = flags & READ_ONLY != 0;
            Some(State::Transmission { export, size_bytes, read_only, agreed, payload })
        }
        _ => None,
    }
}

fn payload(taken: &mut Take<'_>) -> Option<Payload> {
    let (cookie, offset, left_bytes) = (taken.u64()?, taken.u64()?, taken.u32()?);
    let is_durable = taken.byte()? != 0;
    let refusal = match taken.byte()? {
        0 => None,
        place => Some(*Refusal::ALL.get(usize::from(place) - 1)?),
    };
    let payload = Payload { cookie, offset, left_bytes, is_durable, refusal };
    (left_bytes > 0).then_some(payload)
}

/// Takes fields one behind the other.
struct Take<'b>(&'b [u8]);

impl Take<'_> {
    fn array<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn counted(&mut self) -> Option<Vec<u8>> {
        let bytes = self.u32()? as usize;
        let (counted, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(counted.to_vec())
    }

    fn name(&mut self) -> Option<String> {
        String::from_utf8(self.counted()?).ok()
    }
}
