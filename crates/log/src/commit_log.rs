//! What a user does with a log, wherever the log stands.
//!
//! Promise: a user that keeps to [`CommitLog`] works with a log in this process ([`Log`]) and with
//! one in another, and cannot tell them apart, except by how long a call takes and by the errors
//! named `Unreachable`.
//! Never: opens, drains, prepares or closes a log. Whoever has the log does that.
//!
//! A log has one *reader*: the user who applies its frames somewhere and releases them. Beside the
//! log the reader keeps a small state of its own, words and notes, which survives what the region
//! survives.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdfast_core::Lsn;

use crate::error::{AppendError, CommitError, NoteError, ReadError};
use crate::notes::Noter;
use crate::outcome::{Appended, Marks};
use crate::read::frames::Frame;
use crate::state::Log;
use crate::words;

/// What a user does with a log, wherever it stands. All calls may come from any thread at once,
/// and may block while the process that has the log is being replaced. An `Unreachable` is final:
/// every later call says the same.
pub trait CommitLog: Send + Sync {
    /// Appends one frame that holds `parts`, one after the other. It is stable (durability class
    /// Memory) when this returns. [`Appended::payload`] is where the first byte of the first part
    /// lies, and the bytes of all parts follow one another from there.
    ///
    /// # Errors
    /// See [`AppendError`]. The log is unchanged, except that after [`AppendError::Unreachable`]
    /// nobody knows.
    fn append(&self, records: u16, parts: &[&[u8]]) -> Result<Appended, AppendError>;

    /// Waits until a payload of this length could be appended, but not longer than `patience`.
    ///
    /// # Errors
    /// See [`AppendError`]; [`AppendError::Full`] if there is no room by then.
    fn wait_for_room(&self, payload_bytes: u64, patience: Duration) -> Result<(), AppendError>;

    /// Returns when everything below `upto` is on the device (durability class Disk).
    ///
    /// # Errors
    /// See [`CommitError`].
    fn commit(&self, upto: Lsn) -> Result<(), CommitError>;

    /// The marks, as they were at some moment of this call; the last that were known, where the log
    /// cannot be reached.
    fn marks(&self) -> Marks;

    /// Hands every frame with records in `[from, to)`, whole and in order, to `each`, until that
    /// returns false. Both ends are boundaries of frames. Each frame is checked: one that memory
    /// has damaged is as the log's disk has it. A frame's `payload` is what its `append`
    /// was given, and `payload_lsn` what that returned; it may be used while `each` runs. Nothing
    /// at or above `from` may be released meanwhile.
    ///
    /// # Errors
    /// See [`ReadError`]; frames may have been handed over before.
    fn read(
        &self,
        from: Lsn,
        to: Lsn,
        each: &mut dyn FnMut(&Frame<'_>) -> bool,
    ) -> Result<(), ReadError>;

    /// Checks every frame of `[from, to)`, both of which are boundaries of frames. Answers in how
    /// many frames of this log memory has been found damaged, in all: whoever copied bytes between
    /// two answers that differ may have got some that were not appended. Zero where nobody counts.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn verify(&self, from: Lsn, to: Lsn) -> Result<u64, ReadError> {
        self.read(from, to, &mut |_| true).map(|()| 0)
    }

    /// Copies bytes of the payload of one frame.
    ///
    /// # Errors
    /// See [`ReadError`]; `into` may hold anything then.
    fn copy_bytes(&self, lsn: Lsn, into: &mut [u8]) -> Result<(), ReadError>;

    /// Appends a mark: the reader has applied, and made durable elsewhere, everything below
    /// `released`. After a crash, recovery starts there. Not durable before it is committed. Needs
    /// no room: a full ring can always be emptied.
    ///
    /// # Errors
    /// See [`AppendError`]. The mark may be said again.
    ///
    /// # Panics
    /// If `released` is not durable.
    fn mark(&self, released: Lsn) -> Result<(), AppendError>;

    /// Gives the ring below `upto` back to be written again. Where the log cannot be reached
    /// nothing is released, and a later call does it.
    ///
    /// # Panics
    /// If `upto` is above the newest mark, or below what was released, or being read.
    fn release(&self, upto: Lsn);

    /// How long the ring is, if that is known here.
    fn ring_bytes(&self) -> Option<u64> {
        None
    }

    /// The longest payload that one frame can have.
    fn payload_bytes_max(&self) -> u64;

    /// One of the reader's words. Zero where the region is new, otherwise what was put there last,
    /// by this process or one before it.
    ///
    /// # Errors
    /// See [`WordError`].
    ///
    /// # Panics
    /// This and the other calls about words, if `index` is not in [`words::READER`].
    fn word(&self, index: usize) -> Result<u64, WordError>;

    /// Sets a word. When this returns, whoever uses the log after this process finds it.
    ///
    /// # Errors
    /// See [`WordError`].
    fn set_word(&self, index: usize, value: u64) -> Result<(), WordError>;

    /// Adds to a word that only counts for people. It may arrive late, and a death of this process
    /// may lose it.
    fn add_to_word(&self, index: usize, more: u64);

    /// Raises a word that only counts for people, if it is below `value`. It may arrive late, and a
    /// death of this process may lose it.
    fn raise_word(&self, index: usize, value: u64);

    /// Adds a note behind the others. It is there for whoever uses the log after this process.
    ///
    /// # Errors
    /// See [`NoteError`].
    fn note(&self, record: &[u8]) -> Result<(), NoteError>;

    /// All notes, in the order in which they were made.
    ///
    /// # Errors
    /// See [`NoteError`].
    fn notes(&self) -> Result<Vec<Vec<u8>>, NoteError>;

    /// Replaces all notes in one step; if they do not fit, the old ones stay.
    ///
    /// # Errors
    /// See [`NoteError`].
    fn replace_notes(&self, records: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), NoteError>;
}

/// Why a word was not read or set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WordError {
    /// The log cannot be reached any more. Open it anew.
    Unreachable(Arc<io::Error>),
}

impl Log {
    fn reader_word(&self, index: usize) -> &AtomicU64 {
        check_readers(index);
        self.word(index)
    }
}

fn check_readers(index: usize) {
    assert!(words::READER.contains(&index), "word {index} is not the reader's");
}

/// The log in this process: each call is one of [`Log`]'s own, or of its region's.
impl CommitLog for Log {
    fn append(&self, records: u16, parts: &[&[u8]]) -> Result<Appended, AppendError> {
        Log::append(self, records, parts)
    }

    fn wait_for_room(&self, payload_bytes: u64, patience: Duration) -> Result<(), AppendError> {
        Log::wait_for_room(self, payload_bytes, patience)
    }

    fn commit(&self, upto: Lsn) -> Result<(), CommitError> {
        Log::commit(self, upto)
    }

    fn marks(&self) -> Marks {
        Log::marks(self)
    }

    fn read(
        &self,
        from: Lsn,
        to: Lsn,
        each: &mut dyn FnMut(&Frame<'_>) -> bool,
    ) -> Result<(), ReadError> {
        let frames = self.try_frames(from, to).ok_or(ReadError::Outside { from, to })?;
        let mut at = from;
        while at < to {
            let hand = |frame: &Frame<'_>| frame.of_user().is_none_or(|frame| each(&frame));
            let (end, goes_on) = self.hand_frame(&frames, (at, to), hand)?;
            if !goes_on {
                return Ok(());
            }
            at = end;
        }
        Ok(())
    }

    fn verify(&self, from: Lsn, to: Lsn) -> Result<u64, ReadError> {
        CommitLog::read(self, from, to, &mut |_| true)?;
        Ok(Log::word(self, words::HEALED).load(Ordering::Relaxed))
    }

    fn copy_bytes(&self, lsn: Lsn, into: &mut [u8]) -> Result<(), ReadError> {
        if self.copy_damaged(lsn, into) {
            return Ok(());
        }
        let bytes = into.len();
        let outside =
            || ReadError::Outside { from: lsn, to: Lsn(lsn.0.saturating_add(bytes as u64)) };
        let pin = self.region.try_pin(lsn.get()).ok_or_else(outside)?;
        into.copy_from_slice(pin.get(lsn.get(), bytes).ok_or_else(outside)?);
        Ok(())
    }

    fn mark(&self, released: Lsn) -> Result<(), AppendError> {
        Log::mark(self, released)
    }

    fn release(&self, upto: Lsn) {
        Log::release(self, upto);
    }

    fn ring_bytes(&self) -> Option<u64> {
        Some(self.geometry.ring_bytes())
    }

    fn payload_bytes_max(&self) -> u64 {
        Log::payload_bytes_max(self)
    }

    fn word(&self, index: usize) -> Result<u64, WordError> {
        Ok(self.reader_word(index).load(Ordering::Relaxed))
    }

    fn set_word(&self, index: usize, value: u64) -> Result<(), WordError> {
        check_readers(index);
        self.region.set_word(index, value);
        Ok(())
    }

    fn add_to_word(&self, index: usize, more: u64) {
        self.reader_word(index).fetch_add(more, Ordering::Relaxed);
    }

    fn raise_word(&self, index: usize, value: u64) {
        self.reader_word(index).fetch_max(value, Ordering::Relaxed);
    }

    fn note(&self, record: &[u8]) -> Result<(), NoteError> {
        self.note_of(Noter::Reader, record)
    }

    fn notes(&self) -> Result<Vec<Vec<u8>>, NoteError> {
        self.notes_of(Noter::Reader)
    }

    fn replace_notes(&self, records: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), NoteError> {
        self.replace_notes_of_all(records.map(|note| (Noter::Reader, note)))
    }
}
