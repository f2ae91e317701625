//! The log in the server, as a log.
//!
//! Promise: each call is one request or a few, and its errors are those of a log in this process,
//! or `Unreachable` once the server refuses this client. What is only counted is sent when a word
//! is read or set.
//! Never: believes an answer further than its own memory reaches.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_log::{
    AppendError, Appended, CommitError, CommitLog, Frame, Lsn, Marks, NoteError, ReadError,
    WordError,
};
use holdfast_memory::queue::Response;

use crate::answer::{Refusal, judged};
use crate::call::{Call, ResponseTarget};
use crate::connect::ConnectError;
use crate::counts::Counts;
use crate::protocol::{LOG_PREFIX, Operation, Reply, Status, VOLUME_PREFIX, u64_at};
use crate::session::{Patience, Session};
use crate::wire;

/// How long a program waits until there is room for it again.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(10);

/// A served log. Share it among all threads of a process.
#[derive(Debug)]
pub struct LogClient {
    session: Session,
    /// The newest marks that an answer told of.
    known: Mutex<Marks>,
    /// Notes are replaced in several requests.
    replacing: Mutex<()>,
    /// What was added to words and not sent yet.
    counts: Counts,
    /// As whoever connected knows it.
    ring_bytes: Option<u64>,
}

impl LogClient {
    /// Connects to the log `name` of the server that listens at `socket`.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(socket: &Path, name: &str) -> Result<LogClient, ConnectError> {
        let patience = Patience { first: Duration::ZERO, later: REFUSAL_PATIENCE };
        LogClient::open(socket, format!("{LOG_PREFIX}{name}"), patience)
    }

    /// Connects to the log of the volume `name`, for a front end, which knows how long its ring is:
    /// waits until the server has seen that an earlier one is gone, and never lets a request fail
    /// for want of room.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_to_volume(
        socket: &Path,
        name: &str,
        ring_bytes: u64,
    ) -> Result<LogClient, ConnectError> {
        let patience = Patience { first: REFUSAL_PATIENCE, later: Duration::MAX };
        let client = LogClient::open(socket, format!("{VOLUME_PREFIX}{name}"), patience)?;
        Ok(LogClient { ring_bytes: Some(ring_bytes), ..client })
    }

    fn open(socket: &Path, service: String, patience: Patience) -> Result<LogClient, ConnectError> {
        let session = Session::open(socket.to_owned(), service, patience)?;
        let known = Mutex::new(marks_of(session.reply().facts));
        let (replacing, counts) = (Mutex::new(()), Counts::default());
        Ok(LogClient { session, known, replacing, counts, ring_bytes: None })
    }

    /// Sends what was counted since the last time.
    fn send_counts(&self) {
        for (index, more) in self.counts.take() {
            let _ = self.ask(&Call::new(Operation::AddToWord, [index as u64, more]));
        }
    }

    /// How many clients the log takes at a time, this one among them, as the server had it when
    /// this client came.
    #[must_use]
    pub fn clients_max(&self) -> u32 {
        self.reply().clients_max
    }

    fn reply(&self) -> &Reply {
        self.session.reply()
    }

    fn known(&self) -> MutexGuard<'_, Marks> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks only rise, and answers of several threads overtake each other.
    fn learn(&self, released: Lsn, durable: Lsn, tail: Lsn) -> Marks {
        let mut known = self.known();
        known.released = known.released.max(released);
        known.durable = known.durable.max(durable).max(known.released);
        known.tail = known.tail.max(tail).max(known.durable);
        *known
    }

    /// Asks for something that brings no bytes and may be done twice.
    fn ask(&self, ask: &Call<'_>) -> Result<Result<Response, Refusal>, Arc<io::Error>> {
        self.session.ask(ask, &mut ResponseTarget::Nowhere).map(judged)
    }

    /// Asks for something that brings bytes.
    fn fetch(
        &self,
        ask: Call<'_>,
        into: &mut Vec<u8>,
    ) -> Result<Result<Response, Refusal>, Arc<io::Error>> {
        self.session.ask(&ask, &mut ResponseTarget::Vector(into)).map(judged)
    }

    /// The notes that one request brings, from number `first` on.
    fn notes_from(&self, first: u64, notes: &mut Vec<Vec<u8>>) -> Result<u64, NoteError> {
        let mut bytes = Vec::new();
        let fetched = self.fetch(Call::new(Operation::Notes, [first, 0]), &mut bytes);
        fetched.map_err(NoteError::Unreachable)?.map_err(note_error)?;
        let before = notes.len();
        notes.extend(wire::unpack_notes(&bytes).map(<[u8]>::to_vec));
        Ok((notes.len() - before) as u64)
    }

    /// Hands over all notes and has them replaced. False if the server changed meanwhile and has
    /// only a part of them.
    fn try_replace(&self, records: &[Vec<u8>]) -> Result<bool, NoteError> {
        let bytes_max = self.reply().buffer_bytes as usize;
        let (mut packed, mut sent) = (Vec::new(), 0);
        while sent < records.len() {
            packed.clear();
            let rest = records[sent..].iter();
            let count =
                rest.take_while(|note| wire::pack_note(&mut packed, note, bytes_max)).count();
            if count == 0 {
                return Err(NoteError::Full);
            }
            if !self.collect(sent as u64, &packed)? {
                return Ok(false);
            }
            sent += count;
        }
        self.conclude(&Call::new(Operation::ReplaceNotes, [sent as u64, 0]))
    }

    fn collect(&self, first: u64, packed: &[u8]) -> Result<bool, NoteError> {
        let ask = Call::new(Operation::CollectNotes, [first, 0]);
        self.conclude(&Call { parts: &[packed], ..ask })
    }

    fn conclude(&self, ask: &Call<'_>) -> Result<bool, NoteError> {
        match self.ask(ask).map_err(NoteError::Unreachable)? {
            Ok(_) => Ok(true),
            Err(Refusal { status: Status::BadSequence, .. }) => Ok(false),
            Err(refusal) => Err(note_error(refusal)),
        }
    }
}

impl CommitLog for LogClient {
    fn append(&self, records: u16, parts: &[&[u8]]) -> Result<Appended, AppendError> {
        let payload_bytes = parts.iter().map(|part| part.len() as u64).sum();
        let payload_bytes_max = self.payload_bytes_max();
        if payload_bytes > payload_bytes_max {
            return Err(AppendError::TooLarge { payload_bytes, payload_bytes_max });
        }
        let ask = Call { count: records, parts, ..Call::new(Operation::Append, [0; 2]) };
        let answer = self
            .session
            .ask_once(ask, &mut ResponseTarget::Nowhere)
            .map_err(AppendError::Unreachable)?;
        let Response { bytes, value: [lsn, end], .. } =
            judged(answer).map_err(|refusal| append_error(refusal, payload_bytes_max))?;
        let appended =
            Appended { lsn: Lsn(lsn), payload: Lsn(lsn).advance(bytes.into()), end: Lsn(end) };
        self.learn(Lsn(0), Lsn(0), appended.end);
        Ok(appended)
    }

    fn wait_for_room(&self, payload_bytes: u64, patience: Duration) -> Result<(), AppendError> {
        let payload_bytes_max = self.payload_bytes_max();
        if payload_bytes > payload_bytes_max {
            return Err(AppendError::TooLarge { payload_bytes, payload_bytes_max });
        }
        let patience_ms = u64::try_from(patience.as_millis()).map_or(0, |ms| ms.max(1));
        let answer = self.ask(&Call::new(Operation::Room, [payload_bytes, patience_ms]));
        answer
            .map_err(AppendError::Unreachable)?
            .map_err(|refusal| append_error(refusal, payload_bytes_max))?;
        Ok(())
    }

    fn commit(&self, upto: Lsn) -> Result<(), CommitError> {
        if self.known().durable >= upto {
            return Ok(());
        }
        let answer = self.ask(&Call::new(Operation::Commit, [upto.0, 0]));
        answer.map_err(CommitError::Unreachable)?.map_err(commit_error)?;
        self.learn(Lsn(0), upto, Lsn(0));
        Ok(())
    }

    fn marks(&self) -> Marks {
        let mut bytes = Vec::new();
        let fetched = self.fetch(Call::new(Operation::Marks, [0; 2]), &mut bytes);
        match fetched {
            Ok(Ok(_)) if bytes.len() == 24 => {
                let [released, durable, tail] = [0, 8, 16].map(|at| Lsn(u64_at(&bytes, at)));
                self.learn(released, durable, tail)
            }
            _ => *self.known(),
        }
    }

    fn read(
        &self,
        from: Lsn,
        to: Lsn,
        each: &mut dyn FnMut(&Frame<'_>) -> bool,
    ) -> Result<(), ReadError> {
        let (mut at, mut bytes) = (from, Vec::new());
        while at < to {
            let fetched = self.fetch(Call::new(Operation::Read, [at.0, to.0]), &mut bytes);
            let answer = fetched.map_err(ReadError::Unreachable)?;
            let answer = answer.map_err(|refusal| read_error(refusal, at, to))?;
            if !wire::unpack_frames(&bytes).all(|frame| each(&frame)) {
                return Ok(());
            }
            let next = Lsn(answer.value[0]);
            if next <= at {
                return Err(ReadError::Boundary(at));
            }
            at = next;
        }
        Ok(())
    }

    fn verify(&self, from: Lsn, to: Lsn) -> Result<u64, ReadError> {
        let answer = self.ask(&Call::new(Operation::Verify, [from.0, to.0]));
        match answer.map_err(ReadError::Unreachable)? {
            Ok(response) => Ok(response.value[0]),
            // An older server, which its keeper has not replaced yet.
            Err(Refusal { status: Status::BadOperation, .. }) => Ok(0),
            Err(refusal) => Err(read_error(refusal, from, to)),
        }
    }

    fn copy_bytes(&self, lsn: Lsn, into: &mut [u8]) -> Result<(), ReadError> {
        let (mut at, mut bytes) = (lsn, Vec::new());
        for chunk in into.chunks_mut(self.reply().buffer_bytes as usize) {
            let length = chunk.len() as u32;
            let ask = Call { bytes: length, ..Call::new(Operation::Copy, [at.0, 0]) };
            let to = at.advance(length.into());
            let answer = self.fetch(ask, &mut bytes).map_err(ReadError::Unreachable)?;
            answer.map_err(|refusal| read_error(refusal, at, to))?;
            if bytes.len() != chunk.len() {
                return Err(ReadError::Outside { from: at, to });
            }
            chunk.copy_from_slice(&bytes);
            at = to;
        }
        Ok(())
    }

    fn mark(&self, released: Lsn) -> Result<(), AppendError> {
        let answer = self.ask(&Call::new(Operation::Mark, [released.0, 0]));
        let answer = answer.map_err(AppendError::Unreachable)?;
        answer.map_err(|refusal| append_error(refusal, self.payload_bytes_max()))?;
        Ok(())
    }

    fn release(&self, upto: Lsn) {
        if let Ok(Ok(_)) = self.ask(&Call::new(Operation::Release, [upto.0, 0])) {
            self.learn(upto, Lsn(0), Lsn(0));
        }
    }

    fn ring_bytes(&self) -> Option<u64> {
        self.ring_bytes
    }

    fn payload_bytes_max(&self) -> u64 {
        self.reply().payload_bytes_max
    }

    fn word(&self, index: usize) -> Result<u64, WordError> {
        self.send_counts();
        let answer = self.ask(&Call::new(Operation::Word, [index as u64, 0]));
        answer.map_err(WordError::Unreachable)?.map(|r| r.value[0]).map_err(word_error)
    }

    fn set_word(&self, index: usize, value: u64) -> Result<(), WordError> {
        self.send_counts();
        let answer = self.ask(&Call::new(Operation::SetWord, [index as u64, value]));
        answer.map_err(WordError::Unreachable)?.map(drop).map_err(word_error)
    }

    fn add_to_word(&self, index: usize, more: u64) {
        self.counts.add(index, more);
    }

    fn raise_word(&self, index: usize, value: u64) {
        let _ = self.ask(&Call::new(Operation::RaiseWord, [index as u64, value]));
    }

    fn note(&self, record: &[u8]) -> Result<(), NoteError> {
        if record.len() > self.reply().buffer_bytes as usize {
            return Err(NoteError::Full);
        }
        let ask = Call { parts: &[record], ..Call::new(Operation::Note, [0; 2]) };
        self.ask(&ask).map_err(NoteError::Unreachable)?.map(drop).map_err(note_error)
    }

    fn notes(&self) -> Result<Vec<Vec<u8>>, NoteError> {
        let mut notes = Vec::new();
        while self.notes_from(notes.len() as u64, &mut notes)? > 0 {}
        Ok(notes)
    }

    fn replace_notes(&self, records: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), NoteError> {
        let _alone = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let records: Vec<Vec<u8>> = records.collect();
        while !self.try_replace(&records)? {}
        Ok(())
    }
}

fn marks_of([released, durable, tail]: [u64; 3]) -> Marks {
    Marks { released: Lsn(released), durable: Lsn(durable), tail: Lsn(tail) }
}

fn append_error(refusal: Refusal, payload_bytes_max: u64) -> AppendError {
    match refusal.status {
        Status::Full => AppendError::Full,
        Status::TooLarge => {
            AppendError::TooLarge { payload_bytes: refusal.value, payload_bytes_max }
        }
        Status::Poisoned => AppendError::Poisoned(Arc::new(refusal.errno())),
        Status::Unprepared => AppendError::Unmarked(Arc::new(refusal.errno())),
        _ => AppendError::Unreachable(refusal.refused()),
    }
}

fn commit_error(refusal: Refusal) -> CommitError {
    match refusal.status {
        Status::Poisoned => CommitError::Poisoned(Arc::new(refusal.errno())),
        Status::Unprepared => CommitError::Unprepared(Arc::new(refusal.errno())),
        _ => CommitError::Unreachable(refusal.refused()),
    }
}

fn read_error(refusal: Refusal, from: Lsn, to: Lsn) -> ReadError {
    match refusal.status {
        Status::BadPosition if refusal.value != 0 => ReadError::Boundary(Lsn(refusal.value)),
        Status::BadPosition => ReadError::Outside { from, to },
        Status::Damaged => ReadError::Damaged(Lsn(refusal.value)),
        _ => ReadError::Unreachable(refusal.refused()),
    }
}

fn word_error(refusal: Refusal) -> WordError {
    WordError::Unreachable(refusal.refused())
}

fn note_error(refusal: Refusal) -> NoteError {
    match refusal.status {
        Status::NotesFull => NoteError::Full,
        Status::NotesDamaged => NoteError::Damaged { offset: refusal.value },
        _ => NoteError::Unreachable(refusal.refused()),
    }
}
