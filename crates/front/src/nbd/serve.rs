//! Requests answered from a disk.
//!
//! Promise: a range is checked before the disk is asked, and the command before its range, as a
//! flush has none; a write that the disk takes at once reaches it whole; the reply to a request
//! that asks for durability waits for a flush that began after its change.
//! Never: knows a socket, waits for a flush, or holds more of a long request than one piece.

use holdfast_io::{Blocks, BlocksError, Receiving, SendError, Sending};
use holdfast_peers::in_hand::{Doing, InHand};

use super::agreed::Agreed;
use super::buffers::Replies;
use super::export::Export;
use super::parse::{self, Command, Request};
use super::payload::{Payload, Refusal};
use super::reply;
use super::step::{Over, Step};
use super::wire::{self, command_flag};
use crate::complaints::Complaints;

/// Long reads are sent, and long writes given to the disk, in pieces of about this: the client
/// works on one while the server works on the next, and both find it in their caches.
const PIECE_BYTES: u32 = 256 << 10;

/// Stretches that one reply tells of.
const STRETCHES_MAX: usize = 1024;

/// A read whose bytes are still going.
#[derive(Clone, Copy, Debug)]
struct LongRead {
    cookie: u64,
    offset: u64,
    left_bytes: u32,
    /// Why, and from where on, the bytes mean nothing.
    failed: Option<(Refusal, u64)>,
}

/// A conversation about one export.
pub(crate) struct Transmission<'e> {
    pub(crate) export: &'e Export<'e>,
    pub(crate) agreed: Agreed,
    pub(crate) size_bytes: u64,
    pub(crate) payload: Option<Payload>,
    read: Option<LongRead>,
    /// From so many bytes on a read's are sent as they come.
    long_read_bytes_min: u32,
    /// From so many bytes on a write's are received as they come.
    long_write_bytes_min: u32,
    write_piece_bytes: u32,
}

impl<'e> Transmission<'e> {
    pub(crate) fn new(export: &'e Export<'e>, agreed: Agreed) -> Self {
        let blocks = export.blocks;
        let write_piece_bytes = write_piece_bytes(blocks.atomic_bytes_max());
        let at_most = |bytes_min: usize, most: u32| bytes_min.min(most as usize) as u32;
        Self {
            export,
            agreed,
            size_bytes: blocks.size_bytes(),
            payload: None,
            read: None,
            long_read_bytes_min: at_most(blocks.send_bytes_min(), PIECE_BYTES + 1),
            long_write_bytes_min: at_most(blocks.receive_bytes_min(), write_piece_bytes + 1),
            write_piece_bytes,
        }
    }

    pub(crate) fn step(
        &mut self,
        input: &[u8],
        out: &mut Replies,
        complaints: &mut Complaints,
    ) -> Step {
        let _in_hand = InHand::take(Doing::Other);
        if self.go_on_reading(out, complaints) {
            return Step::Used(0);
        }
        if let Some(payload) = self.payload.take() {
            return self.go_on_writing(payload, input, out, complaints);
        }
        let Some((head, payload)) = input.split_first_chunk() else {
            return Step::Needs(wire::REQUEST_BYTES);
        };
        match parse::request(head) {
            Ok(request) => self.begin(&request, payload, out, complaints),
            Err(fault) => Step::Over(Over::Fault(fault)),
        }
    }

    /// What a flush for `cookie` came to.
    pub(crate) fn flushed(
        &self,
        cookie: u64,
        flushed: Result<(), &BlocksError>,
        out: &mut Replies,
        complaints: &mut Complaints,
    ) {
        self.answer(cookie, flushed, out, complaints);
    }

    /// Puts one more piece of a long read; false if there is none under way.
    pub(crate) fn go_on_reading(&mut self, out: &mut Replies, complaints: &mut Complaints) -> bool {
        let Some(mut read) = self.read.take() else { return false };
        let bytes = read.left_bytes.min(PIECE_BYTES);
        let into = out.add(bytes as usize);
        if read.failed.is_none()
            && let Err(error) = self.export.blocks.read(into, read.offset)
        {
            complaints.say(format_args!("a read at {}: {error}", read.offset));
            read.failed = Some((Refusal::from(&error), read.offset));
        }
        if read.failed.is_some() {
            into.fill(0);
        }
        read.offset += u64::from(bytes);
        read.left_bytes -= bytes;
        match read.failed {
            _ if read.left_bytes > 0 => self.read = Some(read),
            Some((refusal, at)) => reply::error_at(out, read.cookie, refusal.error(), at),
            None => reply::data_end(out, read.cookie),
        }
        true
    }

    /// See [`Exchange::send_read`](super::Exchange::send_read). What a failed read still has to
    /// send means nothing, and is no disk's.
    pub(crate) fn send_read(
        &mut self,
        out: &mut Replies,
        send: impl FnOnce(&dyn Blocks, &Sending<'_>) -> Result<usize, SendError>,
    ) -> Option<Result<(), SendError>> {
        let mut read = self.read.filter(|read| read.failed.is_none())?;
        let (head_bytes, end) = (out.unsent().len(), out.end());
        reply::data_end(out, read.cookie);
        let (head, tail) = out.unsent().split_at(head_bytes);
        let (offset, bytes) = (read.offset, read.left_bytes as usize);
        let in_hand = InHand::take(Doing::Read);
        let sent = send(self.export.blocks, &Sending { head, offset, bytes, tail });
        drop(in_hand);
        let sent_bytes = *sent.as_ref().unwrap_or(&0);
        let of_read = sent_bytes.saturating_sub(head_bytes).min(bytes);
        read.offset += of_read as u64;
        read.left_bytes -= of_read as u32;
        self.read = (read.left_bytes > 0).then_some(read);
        if self.read.is_some() {
            out.take_back(end);
        }
        out.sent(sent_bytes - of_read);
        Some(sent.map(drop))
    }

    fn begin(
        &mut self,
        request: &Request,
        payload: &[u8],
        out: &mut Replies,
        complaints: &mut Complaints,
    ) -> Step {
        if let Err(refusal) = self.check(request) {
            complaints.say(format_args!("{request:?}: {}", refusal.text()));
            return self.refuse(request, refusal, out);
        }
        let blocks = self.export.blocks;
        let (offset, bytes) = (request.offset, u64::from(request.bytes));
        let done = match request.command {
            Command::Read => {
                self.read(request, out, complaints);
                return Step::Used(wire::REQUEST_BYTES);
            }
            Command::Write => return self.write(request, payload, out, complaints),
            Command::Flush => {
                return Step::Flush { used: wire::REQUEST_BYTES, cookie: request.cookie };
            }
            Command::WriteZeroes if request.flags & command_flag::FAST_ZERO != 0 => {
                return self.refuse(request, Refusal::NotFast, out);
            }
            Command::WriteZeroes if request.flags & command_flag::NO_HOLE != 0 => {
                blocks.write_zeroes(offset, bytes)
            }
            Command::WriteZeroes | Command::Trim => blocks.discard(offset, bytes),
            // The disk has a cache of its own, and knows what to keep there.
            Command::Cache => Ok(()),
            Command::BlockStatus => {
                self.tell_status(request, out, complaints);
                return Step::Used(wire::REQUEST_BYTES);
            }
            Command::Disconnect => return Step::Over(Over::Parted),
            Command::Unknown(_) => return self.refuse(request, Refusal::Command, out),
        };
        let is_durable = is_durable(request) && request.command != Command::Cache;
        self.changed(request.cookie, done, is_durable, wire::REQUEST_BYTES, out, complaints)
    }

    /// Whether the request may be carried out. Its range comes last: some commands have none.
    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let structured = if self.agreed.structured { command_flag::DF } else { 0 };
        let (flags, changes, bytes_max) = match request.command {
            Command::Disconnect => return Ok(()),
            Command::Read => (structured, false, wire::PAYLOAD_BYTES_MAX),
            Command::Write => (0, true, wire::PAYLOAD_BYTES_MAX),
            Command::Flush => (0, false, u32::MAX),
            Command::Trim => (0, true, u32::MAX),
            Command::Cache => (0, false, u32::MAX),
            Command::WriteZeroes => {
                (command_flag::NO_HOLE | command_flag::FAST_ZERO, true, u32::MAX)
            }
            Command::BlockStatus if self.agreed.allocation => {
                (command_flag::REQ_ONE, false, u32::MAX)
            }
            Command::BlockStatus | Command::Unknown(_) => return Err(Refusal::Command),
        };
        if request.flags & !(flags | command_flag::FUA) != 0 {
            return Err(Refusal::Flag);
        }
        if changes && self.export.read_only {
            return Err(Refusal::ReadOnly);
        }
        if request.bytes > bytes_max {
            return Err(Refusal::TooLong);
        }
        match request.command {
            Command::Flush => Ok(()),
            _ if self.holds(request) => Ok(()),
            Command::Write | Command::WriteZeroes => Err(Refusal::WriteOutOfRange),
            _ => Err(Refusal::OutOfRange),
        }
    }

    /// A status of no bytes could not be told.
    fn holds(&self, request: &Request) -> bool {
        let end = request.offset.checked_add(u64::from(request.bytes));
        let is_empty = request.bytes == 0 && request.command == Command::BlockStatus;
        end.is_some_and(|end| end <= self.size_bytes) && !is_empty
    }

    /// Refuses a request; what follows it is thrown away first.
    fn refuse(&mut self, request: &Request, refusal: Refusal, out: &mut Replies) -> Step {
        let (cookie, left_bytes) = (request.cookie, request.payload_bytes());
        if left_bytes == 0 {
            self.put_refusal(cookie, refusal, out);
        } else {
            let offset = request.offset;
            let refusal = Some(refusal);
            self.payload = Some(Payload { cookie, offset, left_bytes, is_durable: false, refusal });
        }
        Step::Used(wire::REQUEST_BYTES)
    }

    fn tell_status(&mut self, request: &Request, out: &mut Replies, complaints: &mut Complaints) {
        match self.stretches(request) {
            Ok(stretches) => reply::block_status(out, request.cookie, &stretches),
            Err(error) => self.answer(request.cookie, Err(&error), out, complaints),
        }
    }

    /// How long each stretch of a range is, and its flags; the last of many are left out.
    fn stretches(&self, request: &Request) -> Result<Vec<(u32, u32)>, BlocksError> {
        let wants_one = request.flags & command_flag::REQ_ONE != 0;
        let most = if wants_one { 1 } else { STRETCHES_MAX };
        let (mut at, end) = (request.offset, request.offset + u64::from(request.bytes));
        let mut stretches: Vec<(u32, u32)> = Vec::new();
        while at < end {
            let extent = self.export.blocks.extent_at(at)?;
            assert!(extent.end > at, "an extent that ends where it begins");
            let bytes = (extent.end.min(end) - at) as u32;
            let flags = if extent.is_hole { wire::HOLE_AND_ZERO } else { 0 };
            let is_full = stretches.len() == most;
            match stretches.last_mut() {
                Some((known, alike)) if *alike == flags => *known += bytes,
                _ if is_full => break,
                _ => stretches.push((bytes, flags)),
            }
            at += u64::from(bytes);
        }
        Ok(stretches)
    }

    /// A reply without structure cannot take a success back, so its data are read before it.
    fn read(&mut self, request: &Request, out: &mut Replies, complaints: &mut Complaints) {
        let Request { cookie, offset, bytes, .. } = *request;
        let start = out.end();
        match self.agreed.structured {
            true if bytes == 0 => return reply::data_end(out, cookie),
            true if bytes >= self.long_read_bytes_min => {
                reply::data_head(out, cookie, offset, bytes, false);
                self.read = Some(LongRead { cookie, offset, left_bytes: bytes, failed: None });
                return;
            }
            true => reply::data_head(out, cookie, offset, bytes, true),
            false => reply::simple(out, cookie, 0),
        }
        let read = self.export.blocks.read(out.add(bytes as usize), offset);
        if read.is_err() {
            out.take_back(start);
            self.answer(cookie, read.as_ref().copied(), out, complaints);
        }
    }

    /// A write that the disk takes at once is given to it at once, when all of it is there.
    fn write(
        &mut self,
        request: &Request,
        payload: &[u8],
        out: &mut Replies,
        complaints: &mut Complaints,
    ) -> Step {
        let Request { cookie, offset, bytes: left_bytes, .. } = *request;
        let is_durable = is_durable(request);
        let is_whole = payload.len() >= left_bytes as usize;
        let is_long = left_bytes >= self.long_write_bytes_min && !is_whole;
        if is_long || left_bytes > self.write_piece_bytes {
            self.payload = Some(Payload { cookie, offset, left_bytes, is_durable, refusal: None });
            return Step::Used(wire::REQUEST_BYTES);
        }
        let whole_bytes = wire::REQUEST_BYTES + left_bytes as usize;
        let Some(payload) = payload.get(..left_bytes as usize) else {
            return Step::Needs(whole_bytes);
        };
        let written = self.export.blocks.write(payload, offset);
        self.changed(cookie, written, is_durable, whole_bytes, out, complaints)
    }

    fn go_on_writing(
        &mut self,
        payload: Payload,
        input: &[u8],
        out: &mut Replies,
        complaints: &mut Complaints,
    ) -> Step {
        let bytes = match payload.refusal {
            None => payload.left_bytes.min(self.write_piece_bytes) as usize,
            Some(_) => input.len().clamp(1, payload.left_bytes as usize),
        };
        let Some(piece) = input.get(..bytes) else {
            self.payload = Some(payload);
            return Step::Needs(bytes);
        };
        let written = match payload.refusal {
            None => self.export.blocks.write(piece, payload.offset),
            Some(_) => Ok(()),
        };
        self.wrote(payload, bytes, written, out, complaints)
    }

    /// Room for the next piece of a long write, where it will lie.
    pub(crate) fn receive(&self) -> Option<Box<dyn Receiving + 'e>> {
        let payload = self.payload.filter(|payload| payload.refusal.is_none())?;
        let bytes = payload.left_bytes.min(self.write_piece_bytes);
        let is_long = bytes >= self.long_write_bytes_min;
        is_long.then(|| self.export.blocks.receive(payload.offset, bytes as usize))?
    }

    /// Goes on after such a piece of so many bytes.
    pub(crate) fn received(
        &mut self,
        bytes: usize,
        written: Result<(), BlocksError>,
        out: &mut Replies,
        complaints: &mut Complaints,
    ) -> Step {
        let payload = self.payload.take().expect("only a piece of a write is received");
        self.wrote(payload, bytes, written, out, complaints)
    }

    /// Goes on after a piece of a long write, which came to `written`.
    fn wrote(
        &mut self,
        mut payload: Payload,
        bytes: usize,
        written: Result<(), BlocksError>,
        out: &mut Replies,
        complaints: &mut Complaints,
    ) -> Step {
        match written {
            // Nobody has checked the range of a write that was refused.
            _ if payload.refusal.is_some() => {}
            Ok(()) => payload.offset += bytes as u64,
            Err(error) => {
                complaints.say(format_args!("a write at {}: {error}", payload.offset));
                payload.refusal = Some(Refusal::from(&error));
            }
        }
        payload.left_bytes -= bytes as u32;
        let Payload { cookie, is_durable, .. } = payload;
        match payload.refusal {
            _ if payload.left_bytes > 0 => self.payload = Some(payload),
            Some(refusal) => self.put_refusal(cookie, refusal, out),
            None => return self.changed(cookie, Ok(()), is_durable, bytes, out, complaints),
        }
        Step::Used(bytes)
    }

    /// Answers a change, or has a flush done first.
    fn changed(
        &self,
        cookie: u64,
        changed: Result<(), BlocksError>,
        is_durable: bool,
        used: usize,
        out: &mut Replies,
        complaints: &mut Complaints,
    ) -> Step {
        if changed.is_ok() && is_durable {
            return Step::Flush { used, cookie };
        }
        self.answer(cookie, changed.as_ref().copied(), out, complaints);
        Step::Used(used)
    }

    fn answer(
        &self,
        cookie: u64,
        result: Result<(), &BlocksError>,
        out: &mut Replies,
        complaints: &mut Complaints,
    ) {
        match result {
            Ok(()) => reply::simple(out, cookie, 0),
            Err(error) => {
                complaints.say(format_args!("a request failed: {error}"));
                self.put_refusal(cookie, Refusal::from(error), out);
            }
        }
    }

    fn put_refusal(&self, cookie: u64, refusal: Refusal, out: &mut Replies) {
        match self.agreed.structured {
            true => reply::error(out, cookie, refusal.error(), refusal.text()),
            false => reply::simple(out, cookie, refusal.error()),
        }
    }
}

fn is_durable(request: &Request) -> bool {
    request.flags & command_flag::FUA != 0
}

/// The longest piece of a write. What the disk takes at once is never divided; more than that is
/// divided where the disk would divide it.
fn write_piece_bytes(atomic_bytes_max: usize) -> u32 {
    let most = wire::PAYLOAD_BYTES_MAX as usize;
    let atomic = atomic_bytes_max.clamp(1, most) as u32;
    if atomic >= PIECE_BYTES { atomic } else { PIECE_BYTES / atomic * atomic }
}
