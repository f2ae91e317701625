//! What the clients of a log may ask, request by request.
//!
//! Promise: what waits for the log's device, or for room, is answered by whoever brings that about.
//! Never: waits for either in the session's thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_client::protocol::{ClientId, Hello, Operation, Status};
use holdfast_client::wire;
use holdfast_core::frame::HEADER_BYTES;
use holdfast_log::{CommitLog, Lsn, NUMBER_BYTES, words::READER};
use holdfast_memory::queue::Response;
use holdfast_peers::Peer;

use crate::handler::{Departure, Exchange, Handler, Refusal, done};
use crate::identity::of_user;
use crate::served::ServedLog;
use crate::waiting::{Address, Need};
use crate::window::{Number, Shared, WindowRefusal};

/// What one note takes, besides its bytes.
const NOTE_BYTES: usize = 8;

/// How far behind a frame's position lies what the client appended.
const PAYLOAD_AT: u32 = HEADER_BYTES as u32 + NUMBER_BYTES as u32;

/// One session with a log.
pub(crate) struct LogHandler {
    log: Arc<ServedLog>,
    client: ClientId,
    peer: Peer,
    window: Shared,
    /// Notes that are to replace the others.
    collected: Vec<Vec<u8>>,
}

type Handled = Result<Option<Response>, Refusal>;

impl LogHandler {
    /// Opens the client's window; returns the highest number that was appended, too.
    pub(crate) fn begin(
        log: &Arc<ServedLog>,
        hello: &Hello,
        peer: Peer,
    ) -> Result<(LogHandler, u64), Status> {
        let client = of_user(hello.client, peer);
        // Appended by a server that knew it without its user: who comes may be anybody.
        if hello.oldest > 0 && hello.client != client && log.windows.knows(hello.client) {
            return Err(Status::Forgotten);
        }
        let entered = log.windows.enter(client, hello.oldest);
        let (window, last_sequence) = entered.map_err(|refusal| match refusal {
            WindowRefusal::InUse => Status::InUse,
            WindowRefusal::Forgotten => Status::Forgotten,
        })?;
        let (log, collected) = (Arc::clone(log), Vec::new());
        Ok((LogHandler { log, client, peer, window, collected }, last_sequence))
    }
}

impl Handler for LogHandler {
    fn handle(&mut self, operation: Operation, exchange: &mut Exchange<'_>) -> Handled {
        let [first, second] = exchange.request.argument;
        let log = &self.log;
        match operation {
            Operation::Append => return self.append(exchange),
            Operation::Commit => return self.commit(exchange, Lsn(first)),
            Operation::Room => return self.room(exchange, first, second),
            Operation::Marks => {
                let marks = log.log.marks();
                let marks = [marks.released, marks.durable, marks.tail];
                let bytes = marks.map(|lsn| lsn.0.to_le_bytes()).concat();
                return with_bytes(exchange, &bytes, [0; 2]);
            }
            Operation::Read => return self.read(exchange, Lsn(first), Lsn(second)),
            Operation::Copy => {
                let mut bytes = vec![0; exchange.request.bytes as usize];
                log.copy(Lsn(first), &mut bytes)?;
                return with_bytes(exchange, &bytes, [0; 2]);
            }
            Operation::Verify => {
                let found = log.verify(Lsn(first), Lsn(second))?;
                return Ok(Some(done([found, 0])));
            }
            Operation::Mark => log.mark(Lsn(first))?,
            Operation::Release => log.release(Lsn(first))?,
            Operation::Word => return self.word(first),
            Operation::SetWord | Operation::AddToWord | Operation::RaiseWord => {
                self.change_word(operation, first, second)?;
            }
            Operation::Note => {
                exchange.copy_payload();
                log.note(&exchange.bytes.payload)?;
            }
            Operation::Notes => return self.notes(exchange, first),
            Operation::CollectNotes => self.collect(exchange, first)?,
            Operation::ReplaceNotes => self.replace(first)?,
            other => return Err((Status::BadOperation, other as u64)),
        }
        Ok(Some(done([0; 2])))
    }

    fn end(&mut self, address: &Arc<Address>, _departure: Option<Departure>) {
        self.log.waiting.forget(address);
    }
}

impl Drop for LogHandler {
    fn drop(&mut self) {
        self.log.windows.leave(self.client, self.peer);
    }
}

impl LogHandler {
    fn append(&self, exchange: &mut Exchange<'_>) -> Handled {
        let request = exchange.request;
        if u64::from(request.bytes) > self.log.payload_bytes_max() {
            return Err((Status::TooLarge, request.bytes.into()));
        }
        exchange.copy_payload();
        let (sequence, oldest) = (request.sequence, request.argument[0]);
        let number = Number { client: self.client, sequence, oldest };
        let payload = &exchange.bytes.payload;
        let placed = self.log.append(&self.window, number, request.count, payload)?;
        let response = Response { bytes: PAYLOAD_AT, ..done([placed.lsn.0, placed.end.0]) };
        match self.log.is_written_through {
            true => self.answer_when(exchange, Need::Durable(placed.end), response),
            false => Ok(Some(response)),
        }
    }

    fn commit(&self, exchange: &Exchange<'_>, upto: Lsn) -> Handled {
        match upto <= self.log.log.marks().tail {
            true => self.answer_when(exchange, Need::Durable(upto), done([0; 2])),
            false => Err((Status::BadPosition, 0)),
        }
    }

    fn room(&self, exchange: &Exchange<'_>, payload_bytes: u64, patience_ms: u64) -> Handled {
        let patience = (patience_ms > 0).then(|| Duration::from_millis(patience_ms));
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        match payload_bytes <= self.log.payload_bytes_max() {
            true => self.answer_when(exchange, Need::Room(payload_bytes, until), done([0; 2])),
            false => Err((Status::TooLarge, payload_bytes)),
        }
    }

    fn answer_when(&self, exchange: &Exchange<'_>, need: Need, response: Response) -> Handled {
        if !self.log.waiting.enter(exchange.address, exchange.slot, need, response) {
            return Err((Status::BadSequence, 0));
        }
        // What it needs may have come about before it was seen to wait.
        self.log.settle();
        if matches!(need, Need::Room(..)) {
            // Nobody appends meanwhile, and its patience may be short.
            self.log.wake_drainer();
        }
        Ok(None)
    }

    fn read(&self, exchange: &Exchange<'_>, from: Lsn, to: Lsn) -> Handled {
        let mut bytes = Vec::new();
        let bytes_max = exchange.buffer_bytes as usize;
        let next = self.log.read(from, to, &mut bytes, bytes_max)?;
        with_bytes(exchange, &bytes, [next.0, 0])
    }

    fn word(&self, index: u64) -> Handled {
        let value = CommitLog::word(&self.log.log, word_index(index)?);
        Ok(Some(done([value.map_err(|_| (Status::BadWord, index))?, 0])))
    }

    fn change_word(&self, how: Operation, index: u64, value: u64) -> Result<(), Refusal> {
        let (log, index) = (&self.log.log, word_index(index)?);
        match how {
            Operation::AddToWord => CommitLog::add_to_word(log, index, value),
            Operation::RaiseWord => CommitLog::raise_word(log, index, value),
            _ => CommitLog::set_word(log, index, value)
                .map_err(|_| (Status::BadWord, index as u64))?,
        }
        Ok(())
    }

    fn notes(&self, exchange: &Exchange<'_>, first: u64) -> Handled {
        let notes = self.log.notes()?;
        let (mut bytes, bytes_max) = (Vec::new(), exchange.buffer_bytes as usize);
        let wanted = notes.iter().skip(usize::try_from(first).unwrap_or(usize::MAX));
        let count = wanted.take_while(|n| wire::pack_note(&mut bytes, n, bytes_max)).count();
        with_bytes(exchange, &bytes, [count as u64, 0])
    }

    /// Collects notes, if they are the next ones.
    fn collect(&mut self, exchange: &mut Exchange<'_>, first: u64) -> Result<(), Refusal> {
        if first == 0 {
            self.collected = Vec::new();
        }
        if self.collected.len() as u64 != first {
            return Err((Status::BadSequence, self.collected.len() as u64));
        }
        exchange.copy_payload();
        let payload = &exchange.bytes.payload;
        // Each record takes more room among the notes than here.
        let before: usize = self.collected.iter().map(|note| note.len() + NOTE_BYTES).sum();
        if (before + payload.len()) as u64 > self.log.notes_bytes_max() {
            return Err((Status::NotesFull, 0));
        }
        self.collected.extend(wire::unpack_notes(payload).map(<[u8]>::to_vec));
        Ok(())
    }

    /// Puts what was collected in the place of all notes, if it is as many as it should be.
    fn replace(&mut self, count: u64) -> Result<(), Refusal> {
        let collected = if count == 0 { Vec::new() } else { std::mem::take(&mut self.collected) };
        if collected.len() as u64 != count {
            return Err((Status::BadSequence, collected.len() as u64));
        }
        self.log.replace_notes(collected)
    }
}

fn with_bytes(exchange: &Exchange<'_>, bytes: &[u8], value: [u64; 2]) -> Handled {
    let bytes = exchange.bring(bytes)?;
    Ok(Some(Response { bytes, ..done(value) }))
}

fn word_index(index: u64) -> Result<usize, Refusal> {
    let found = usize::try_from(index).ok().filter(|index| READER.contains(index));
    found.ok_or((Status::BadWord, index))
}
