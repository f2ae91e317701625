//! What a reader of segments has in memory: one stretch, inside one span.
//!
//! A reader that goes on and on from front to back gets larger stretches, and at last a thread that
//! reads ahead; one that looks at a frame or two gets a small read.
//!
//! Promise: memory for some spans at the most, however long the log.
//! Never: decides what may be read; looks at the bytes.

use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;

use crate::ahead::{Ahead, Piece, STRETCHES_MAX};
use crate::buffer::Buffer;

/// The first read.
const FIRST_BYTES: u64 = 64 << 10;
/// After so much in a row, what is next is read ahead. Less is read in the time that a thread takes
/// to begin.
const RUN_BYTES: u64 = 8 << 20;
/// How much is read ahead at the most; never more than has been read in a row.
const AHEAD_BYTES: u64 = 16 << 20;

/// A stretch in memory, and how it came there.
pub(crate) struct Window {
    buffer: Buffer,
    from: Lsn,
    to: Lsn,
    /// Bytes read in a row.
    run_bytes: u64,
    ahead: Option<Ahead>,
}

impl Window {
    /// With nothing in it.
    pub(crate) fn new() -> Window {
        let buffer = Buffer::zeroed(0);
        Window { buffer, from: Lsn(0), to: Lsn(0), run_bytes: 0, ahead: None }
    }

    /// Everything that is here from `lsn` on; nothing if `lsn` is not.
    #[inline]
    pub(crate) fn from(&self, lsn: Lsn) -> &[u8] {
        if lsn < self.from || lsn > self.to {
            return &[];
        }
        &self.buffer.bytes()[lsn.since(self.from) as usize..self.to.since(self.from) as usize]
    }

    /// Everything that is here.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// Where a position that is here lies in [`Window::bytes`].
    #[inline]
    pub(crate) fn offset(&self, lsn: Lsn) -> usize {
        lsn.since(self.from) as usize
    }

    /// [`Window::from`], to be changed.
    pub(crate) fn change_from(&mut self, lsn: Lsn) -> &mut [u8] {
        let (from, to) = (self.from, self.to);
        assert!(from <= lsn && lsn <= to, "what is not here is not changed");
        &mut self.buffer.bytes_mut()[lsn.since(from) as usize..to.since(from) as usize]
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
        self.buffer = Buffer::zeroed(bytes);
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

    /// Brings a stretch here, or a longer one that was read ahead. `next` is asked for what will be
    /// wanted soon: the first whole span from a position on, if it may be read.
    ///
    /// # Errors
    /// Of the read; then nothing is here.
    pub(crate) fn load(
        &mut self,
        stretch: &Piece,
        next: &dyn Fn(Lsn) -> Option<Piece>,
    ) -> io::Result<()> {
        let (from, to) = (stretch.from, stretch.to);
        if from < self.from || from > self.to {
            self.clear();
        }
        self.run_bytes = self.run_bytes.saturating_add(to.since(self.to.clamp(from, to)));
        (self.from, self.to) = (from, from);
        self.to = match self.take(from) {
            Some(to) => to?,
            None => self.read(stretch)?,
        };
        if self.run_bytes >= RUN_BYTES {
            self.read_ahead(next);
        }
        Ok(())
    }

    /// What was read ahead from here on: where it ends.
    fn take(&mut self, from: Lsn) -> Option<io::Result<Lsn>> {
        let ahead = self.ahead.as_mut()?;
        let fetched = ahead.take(from)?;
        ahead.give_back(std::mem::replace(&mut self.buffer, fetched.buffer));
        Some(fetched.outcome.map(|()| fetched.to))
    }

    fn read(&mut self, stretch: &Piece) -> io::Result<Lsn> {
        let bytes = stretch.to.since(stretch.from) as usize;
        if self.buffer.bytes().len() < bytes {
            self.buffer = Buffer::zeroed(bytes);
        }
        stretch.segment.read(stretch.from, &mut self.buffer.bytes_mut()[..bytes])?;
        Ok(stretch.to)
    }

    /// Asks for more, as long as there is some. Without a thread it goes on as before.
    fn read_ahead(&mut self, next: &dyn Fn(Lsn) -> Option<Piece>) {
        if self.ahead.is_none() && next(self.to).is_some() {
            self.ahead = Ahead::start().ok();
        }
        let Some(ahead) = &mut self.ahead else { return };
        while let Some(stretch) = next(ahead.end().unwrap_or(self.to)) {
            let span_bytes = stretch.to.since(stretch.from);
            let wanted = (AHEAD_BYTES.min(self.run_bytes) / span_bytes) as usize;
            if ahead.pending() >= wanted.clamp(1, STRETCHES_MAX) {
                return;
            }
            ahead.ask(stretch);
        }
    }
}
