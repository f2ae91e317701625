//! One request, looked at and done.
//!
//! Promise: every field comes from a private copy and is checked before it is used; a payload is
//! copied out of the client's memory before the log looks at it.
//! Never: answers with bytes that another client put anywhere but into the log they share.

use holdfast_client::protocol::{Operation, Status};
use holdfast_client::wire;
use holdfast_core::frame::HEADER_BYTES;
use holdfast_log::{CommitLog, Lsn, NUMBER_BYTES, words::READER};
use holdfast_memory::queue::{Request, Response};

use crate::served::Refusal;
use crate::session::Session;
use crate::waiting::{Need, refusal};
use crate::window::Number;

/// Notes that a session collects before it replaces all of them.
const COLLECTED_BYTES_MAX: usize = 64 << 20;

/// How far behind a frame's position lies what the client appended.
const PAYLOAD_AT: u32 = HEADER_BYTES as u32 + NUMBER_BYTES as u32;

/// What comes of a request.
pub(crate) enum Outcome {
    /// This answer, now.
    Now(Response),
    /// This answer, when that has come about.
    When(Need, Response),
}

impl Session {
    /// Does what is asked.
    pub(crate) fn carry_out(&mut self, request: &Request) -> Outcome {
        let outcome = self.check(request).and_then(|operation| self.act(operation, request));
        outcome.unwrap_or_else(|(status, value)| {
            if status.is_misuse() {
                self.refused(status);
            }
            Outcome::Now(refusal(status, value))
        })
    }

    /// Service, operation and buffer.
    fn check(&self, request: &Request) -> Result<Operation, Refusal> {
        self.service.admits(request.handle, request.check).map_err(|status| (status, 0))?;
        let operation = Operation::from_number(request.operation);
        let operation = operation.ok_or((Status::BadOperation, request.operation.into()))?;
        let number = request.buffer / self.buffer_bytes;
        let is_buffer = request.buffer.is_multiple_of(self.buffer_bytes) && number < self.buffers;
        if !is_buffer || request.bytes > self.buffer_bytes {
            return Err((Status::BadBuffer, request.buffer.into()));
        }
        Ok(operation)
    }

    fn act(&mut self, operation: Operation, request: &Request) -> Result<Outcome, Refusal> {
        let [first, second] = request.argument;
        let log = std::sync::Arc::clone(&self.service.log);
        match operation {
            Operation::Append => return self.append(request),
            Operation::Commit => return self.commit(Lsn(first)),
            Operation::Room => return self.room(first),
            Operation::Marks => {
                let marks = log.log.marks();
                let marks = [marks.released, marks.durable, marks.tail];
                let bytes = marks.map(|lsn| lsn.0.to_le_bytes()).concat();
                return Ok(self.with_bytes(request, &bytes, [0; 2]));
            }
            Operation::Read => return self.read(request, Lsn(first), Lsn(second)),
            Operation::Copy => {
                let mut bytes = vec![0; request.bytes as usize];
                log.copy(Lsn(first), &mut bytes)?;
                return Ok(self.with_bytes(request, &bytes, [0; 2]));
            }
            Operation::Mark => log.mark(Lsn(first))?,
            Operation::Release => log.release(Lsn(first))?,
            Operation::Word => return self.word(first),
            Operation::SetWord | Operation::AddToWord | Operation::RaiseWord => {
                self.change_word(operation, first, second)?;
            }
            Operation::Note => {
                self.copy_payload(request);
                log.note(&self.payload)?;
            }
            Operation::Notes => return self.notes(request, first),
            Operation::CollectNotes => self.collect(request, first)?,
            Operation::ReplaceNotes => self.replace(first)?,
        }
        Ok(done([0; 2]))
    }

    fn append(&mut self, request: &Request) -> Result<Outcome, Refusal> {
        let log = std::sync::Arc::clone(&self.service.log);
        if u64::from(request.bytes) > log.payload_bytes_max() {
            return Err((Status::TooLarge, request.bytes.into()));
        }
        self.copy_payload(request);
        let (sequence, oldest) = (request.sequence, request.argument[0]);
        let number = Number { client: self.client, sequence, oldest };
        let placed = log.append(&self.window, number, request.count, &self.payload)?;
        let response = Response { bytes: PAYLOAD_AT, ..answer([placed.lsn.0, placed.end.0]) };
        Ok(match log.is_written_through {
            true => Outcome::When(Need::Durable(placed.end), response),
            false => Outcome::Now(response),
        })
    }

    fn commit(&self, upto: Lsn) -> Result<Outcome, Refusal> {
        match upto <= self.service.log.log.marks().tail {
            true => Ok(Outcome::When(Need::Durable(upto), answer([0; 2]))),
            false => Err((Status::BadPosition, 0)),
        }
    }

    fn room(&self, payload_bytes: u64) -> Result<Outcome, Refusal> {
        match payload_bytes <= self.service.log.payload_bytes_max() {
            true => Ok(Outcome::When(Need::Room(payload_bytes), answer([0; 2]))),
            false => Err((Status::TooLarge, payload_bytes)),
        }
    }

    fn read(&self, request: &Request, from: Lsn, to: Lsn) -> Result<Outcome, Refusal> {
        let mut bytes = Vec::new();
        let bytes_max = self.buffer_bytes as usize;
        let next = self.service.log.read(from, to, &mut bytes, bytes_max)?;
        Ok(self.with_bytes(request, &bytes, [next.0, 0]))
    }

    fn word(&self, index: u64) -> Result<Outcome, Refusal> {
        let value = CommitLog::word(&self.service.log.log, word_index(index)?);
        Ok(done([value.map_err(|_| (Status::BadWord, index))?, 0]))
    }

    fn change_word(&self, how: Operation, index: u64, value: u64) -> Result<(), Refusal> {
        let (log, index) = (&self.service.log.log, word_index(index)?);
        match how {
            Operation::AddToWord => CommitLog::add_to_word(log, index, value),
            Operation::RaiseWord => CommitLog::raise_word(log, index, value),
            _ => CommitLog::set_word(log, index, value)
                .map_err(|_| (Status::BadWord, index as u64))?,
        }
        Ok(())
    }

    fn notes(&self, request: &Request, first: u64) -> Result<Outcome, Refusal> {
        let notes = self.service.log.notes()?;
        let (mut bytes, bytes_max) = (Vec::new(), self.buffer_bytes as usize);
        let wanted = notes.iter().skip(usize::try_from(first).unwrap_or(usize::MAX));
        let count = wanted.take_while(|n| wire::pack_note(&mut bytes, n, bytes_max)).count();
        Ok(self.with_bytes(request, &bytes, [count as u64, 0]))
    }

    /// Collects notes, if they are the next ones.
    fn collect(&mut self, request: &Request, first: u64) -> Result<(), Refusal> {
        if first == 0 {
            self.collected = Vec::new();
        }
        if self.collected.len() as u64 != first {
            return Err((Status::BadSequence, self.collected.len() as u64));
        }
        self.copy_payload(request);
        let before: usize = self.collected.iter().map(|note| note.len() + 32).sum();
        if before + self.payload.len() > COLLECTED_BYTES_MAX {
            return Err((Status::NotesFull, 0));
        }
        self.collected.extend(wire::unpack_notes(&self.payload).map(<[u8]>::to_vec));
        Ok(())
    }

    /// Puts what was collected in the place of all notes, if it is as many as it should be.
    fn replace(&mut self, count: u64) -> Result<(), Refusal> {
        let collected = if count == 0 { Vec::new() } else { std::mem::take(&mut self.collected) };
        if collected.len() as u64 != count {
            return Err((Status::BadSequence, collected.len() as u64));
        }
        self.service.log.replace_notes(collected)
    }

    /// The one copy that is looked at from now on.
    fn copy_payload(&mut self, request: &Request) {
        self.payload.resize(request.bytes as usize, 0);
        let copied = self.address.memory.copy_out(request.buffer, &mut self.payload);
        copied.expect("the buffer was checked to lie in the memory");
    }

    fn with_bytes(&self, request: &Request, bytes: &[u8], value: [u64; 2]) -> Outcome {
        let copied = self.address.memory.copy_in(request.buffer, bytes);
        copied.expect("what was packed fits the buffer, which was checked");
        let response = Response { bytes: bytes.len() as u32, ..answer(value) };
        Outcome::Now(response)
    }
}

fn word_index(index: u64) -> Result<usize, Refusal> {
    let found = usize::try_from(index).ok().filter(|index| READER.contains(index));
    found.ok_or((Status::BadWord, index))
}

fn answer(value: [u64; 2]) -> Response {
    Response { status: Status::Done as u32, bytes: 0, value }
}

fn done(value: [u64; 2]) -> Outcome {
    Outcome::Now(answer(value))
}
