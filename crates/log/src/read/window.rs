//! What a reader of segments has in memory: one stretch, inside one span.
//!
//! A reader that goes on and on from front to back gets larger stretches, and at last threads that
//! read ahead; one that looks at a frame or two gets a small read.
//!
//! Promise: memory for some spans at the most, however long the log.
//! Never: decides what may be read; looks at the bytes.

use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;

use crate::format::buffer::Buffer;
use crate::read::ahead::{Ahead, Fetched, Piece, ROOM_BYTES, STRETCHES_MAX};

/// The first read.
const FIRST_BYTES: u64 = 64 << 10;
/// After so much in a row, what is next is read ahead. Less is read in the time that a thread takes
/// to begin.
const RUN_BYTES: u64 = 1 << 20;
/// How much is read ahead at the most; never more than has been read in a row.
const AHEAD_BYTES: u64 = 16 << 20;
/// What is read ahead at once, unless whoever looks at it needs whole spans: all that is under way
/// stays in a processor's cache, which takes it faster than memory does, and gives it faster.
pub(crate) const PIECE_BYTES: u64 = 512 << 10;

const _: () = assert!(PIECE_BYTES.is_multiple_of(BLOCK_BYTES));
const _: () = assert!((ROOM_BYTES as u64).is_multiple_of(BLOCK_BYTES));

/// A stretch in memory, and how it came there.
pub(crate) struct Window {
    buffer: Buffer,
    /// Where `from` lies in the buffer.
    start: usize,
    from: Lsn,
    to: Lsn,
    /// Bytes read in a row.
    run_bytes: u64,
    ahead: Option<Ahead>,
}

impl Window {
    /// With nothing in it.
    pub(crate) fn new() -> Window {
        let (buffer, from, to) = (Buffer::zeroed(0), Lsn(0), Lsn(0));
        Window { buffer, start: 0, from, to, run_bytes: 0, ahead: None }
    }

    /// Everything that is here from `lsn` on; nothing if `lsn` is not.
    #[inline]
    pub(crate) fn from(&self, lsn: Lsn) -> &[u8] {
        if lsn < self.from || lsn > self.to {
            return &[];
        }
        &self.buffer.bytes()[self.offset(lsn)..self.offset(self.to)]
    }

    /// Everything that is here.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// Where a position that is here lies in [`Window::bytes`].
    #[inline]
    pub(crate) fn offset(&self, lsn: Lsn) -> usize {
        self.start + lsn.since(self.from) as usize
    }

    /// [`Window::from`], to be changed.
    pub(crate) fn change_from(&mut self, lsn: Lsn) -> &mut [u8] {
        assert!(self.from <= lsn && lsn <= self.to, "what is not here is not changed");
        let (start, end) = (self.offset(lsn), self.offset(self.to));
        &mut self.buffer.bytes_mut()[start..end]
    }

    /// Where that begins and ends which is here.
    pub(crate) fn extent(&self) -> (Lsn, Lsn) {
        (self.from, self.to)
    }

    /// Brings a stretch here that could not be read, with zeros in place of the blocks that the
    /// device does not give, and returns where they are.
    pub(crate) fn salvage(&mut self, piece: &Piece) -> Vec<Lsn> {
        self.clear();
        let bytes = piece.to.since(piece.from) as usize;
        (self.buffer, self.start) = (Buffer::zeroed(bytes), 0);
        (self.from, self.to) = (piece.from, piece.to);
        let unread = piece.segment.salvage(piece.from, self.buffer.bytes_mut());
        unread.iter().map(|block| piece.from.advance(block * BLOCK_BYTES)).collect()
    }

    /// How many bytes to read next, if that is up to the reader.
    pub(crate) fn appetite(&self) -> u64 {
        match self.run_bytes {
            RUN_BYTES.. => u64::MAX,
            bytes => FIRST_BYTES.max(bytes),
        }
    }

    /// Forgets what is here and what is being read.
    pub(crate) fn clear(&mut self) {
        self.to = self.from;
        (self.run_bytes, self.ahead) = (0, None);
    }

    /// Brings a stretch here, or, of one that is read ahead, so much that it reaches `needed`.
    /// `next` is asked for what will be wanted soon: what begins at a position or behind, if it may
    /// be read.
    ///
    /// # Errors
    /// Of the read; then nothing is here.
    pub(crate) fn load(
        &mut self,
        stretch: &Piece,
        needed: Lsn,
        next: &dyn Fn(Lsn) -> Option<Piece>,
    ) -> io::Result<()> {
        let from = stretch.from;
        if from < self.from || from > self.to {
            self.clear();
        }
        let before = self.to;
        self.begin(from);
        if let Err(error) = self.bring(stretch, needed, next) {
            self.to = self.from;
            return Err(error);
        }
        let new = self.to.since(before.clamp(from, self.to));
        self.run_bytes = self.run_bytes.saturating_add(new);
        if self.run_bytes >= RUN_BYTES {
            self.read_ahead(next);
        }
        Ok(())
    }

    /// Forgets what lies before `from`, and everything if that is not here.
    fn begin(&mut self, from: Lsn) {
        match self.from <= from && from <= self.to {
            true => self.start = self.offset(from),
            false => (self.start, self.to) = (0, from),
        }
        self.from = from;
    }

    fn bring(
        &mut self,
        stretch: &Piece,
        needed: Lsn,
        next: &dyn Fn(Lsn) -> Option<Piece>,
    ) -> io::Result<()> {
        while self.to < needed {
            let Some(fetched) = self.ahead.as_mut().and_then(|ahead| ahead.take(self.to)) else {
                return self.read(stretch);
            };
            self.join(fetched)?;
            if self.to < needed {
                self.read_ahead(next);
            }
        }
        Ok(())
    }

    /// Adds what was read ahead, in its buffer if that has room for what is here.
    fn join(&mut self, mut fetched: Fetched) -> io::Result<()> {
        fetched.outcome?;
        let here = self.to.since(self.from) as usize;
        match ROOM_BYTES.checked_sub(here) {
            Some(start) => {
                fetched.buffer.bytes_mut()[start..ROOM_BYTES].copy_from_slice(self.from(self.from));
                self.start = start;
                std::mem::swap(&mut self.buffer, &mut fetched.buffer);
            }
            None => {
                let bytes = fetched.to.since(self.to) as usize;
                self.append(&fetched.buffer.bytes()[ROOM_BYTES..][..bytes]);
            }
        }
        self.to = fetched.to;
        if let Some(ahead) = &mut self.ahead {
            ahead.give_back(fetched.buffer);
        }
        Ok(())
    }

    /// Puts bytes behind what is here.
    fn append(&mut self, bytes: &[u8]) {
        let here = self.to.since(self.from) as usize;
        if self.buffer.bytes().len() < self.start + here + bytes.len() {
            let mut larger = Buffer::zeroed((here + bytes.len()).next_power_of_two());
            larger.bytes_mut()[..here].copy_from_slice(self.from(self.from));
            (self.buffer, self.start) = (larger, 0);
        }
        self.buffer.bytes_mut()[self.start + here..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Brings it here with nobody's help. What was read ahead for another place is of no use.
    fn read(&mut self, stretch: &Piece) -> io::Result<()> {
        self.ahead.take_if(|ahead| ahead.pending() > 0);
        let bytes = stretch.to.since(stretch.from) as usize;
        if self.buffer.bytes().len() < bytes {
            self.buffer = Buffer::zeroed(bytes);
        }
        stretch.segment.read(stretch.from, &mut self.buffer.bytes_mut()[..bytes])?;
        (self.start, self.to) = (0, stretch.to);
        Ok(())
    }

    /// Asks for more, as long as there is some. Without a thread it goes on as before.
    fn read_ahead(&mut self, next: &dyn Fn(Lsn) -> Option<Piece>) {
        let end = self.ahead.as_ref().and_then(Ahead::end);
        let mut stretch = next(end.unwrap_or(self.to));
        while let Some(piece) = stretch {
            let ahead = self.ahead.get_or_insert_default();
            let (to, bytes) = (piece.to, piece.to.since(piece.from));
            let wanted = (AHEAD_BYTES.min(self.run_bytes) / bytes) as usize;
            if ahead.pending() >= wanted.clamp(1, STRETCHES_MAX) || ahead.ask(piece).is_err() {
                return;
            }
            stretch = next(to);
        }
    }
}
