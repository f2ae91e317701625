//! Reading durable frames from the device, as far back as the log goes.
//!
//! Promise: every frame with records between the first that is needed and the durable mark, in
//! order, each checked; damage is reported by position and never taken for the end; at the end the
//! reader can sleep until there is more.
//! Never: touches the ring, so it keeps nobody from appending; shows what is not durable.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::Lsn;
use holdfast_core::frame::{BLOCK_BYTES, FrameHeader, HEADER_BYTES, decode};

use crate::buffer::Buffer;
use crate::frames::Frame;
use crate::log::Log;
use crate::recovery::is_whole;

/// Bytes read at once, unless a frame is longer.
const READ_BYTES: u64 = 1 << 20;

/// Why a cursor does not go on. It stays where it is.
#[derive(Debug)]
#[non_exhaustive]
pub enum CursorError {
    /// What it was to read is no longer needed, and may have been written over. Go on from `first`.
    Truncated {
        /// The first position that is needed.
        first: Lsn,
    },
    /// No whole frame is where one must be: the device damaged it, or the cursor did not begin at a
    /// frame.
    Damaged {
        /// Where.
        at: Lsn,
    },
    /// The device could not be read. Nothing is known of the frame; try again.
    Io(io::Error),
}

/// A reader of a log, with a position. Several may read at once.
pub struct Cursor {
    log: Arc<Log>,
    at: Lsn,
    buffer: Buffer,
    /// What the buffer holds.
    loaded: (Lsn, Lsn),
    /// The frame that was given out last, which lies in the buffer.
    current: Option<(Lsn, FrameHeader)>,
}

impl Cursor {
    pub(crate) fn new(log: Arc<Log>, from: Lsn) -> Cursor {
        let buffer = Buffer::zeroed(READ_BYTES.min(log.geometry.span_bytes()) as usize);
        Cursor { log, at: from, buffer, loaded: (from, from), current: None }
    }

    /// Where the next frame starts, once there is one.
    #[must_use]
    pub fn position(&self) -> Lsn {
        self.at
    }

    /// The next frame as its user appended it; None if no more are durable.
    ///
    /// # Errors
    /// See [`CursorError`].
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CursorError> {
        self.current = None;
        while self.at < self.log.marks().durable {
            if let Some(to) = self.log.behind_hole(self.at) {
                self.at = to;
                continue;
            }
            let header = self.load_frame()?;
            let at = std::mem::replace(&mut self.at, header.end());
            if self.frame(at, header).of_user().is_some() {
                self.current = Some((at, header));
                break;
            }
        }
        Ok(self.current())
    }

    /// The frame that [`Cursor::next_frame`] returned last, once more. None if it returned none.
    #[must_use]
    pub fn current(&self) -> Option<Frame<'_>> {
        let (at, header) = self.current?;
        self.frame(at, header).of_user()
    }

    /// Sleeps until the next frame is durable, or until the timeout; returns whether one is. Of a
    /// log that failed no more will be.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        self.log.wait_durable(self.at, timeout)
    }

    /// The frame that begins at `at` and lies in the buffer as a whole.
    fn frame(&self, at: Lsn, header: FrameHeader) -> Frame<'_> {
        let payload_lsn = header.payload_lsn();
        let start = payload_lsn.since(self.loaded.0) as usize;
        debug_assert!(at >= self.loaded.0 && header.end() <= self.loaded.1);
        let payload = &self.buffer.bytes()[start..start + header.payload_bytes as usize];
        Frame { header, payload, payload_lsn }
    }

    /// Brings the frame at the cursor's position into the buffer, mended if need be, and checks it.
    fn load_frame(&mut self) -> Result<FrameHeader, CursorError> {
        let mut before = None;
        loop {
            let outcome = self.try_load_frame();
            let damaged = matches!(outcome, Err(CursorError::Damaged { .. }));
            // Once for each stretch of bytes that it takes to find out how long the frame is.
            if !damaged || before == Some(self.loaded) || !self.rebuild() {
                return outcome;
            }
            before = Some(self.loaded);
        }
    }

    /// Mends the bytes in the buffer.
    fn rebuild(&mut self) -> bool {
        let (from, to) = self.loaded;
        self.log.rebuild(from, &mut self.buffer.bytes_mut()[..to.since(from) as usize])
    }

    fn try_load_frame(&mut self) -> Result<FrameHeader, CursorError> {
        let damaged = CursorError::Damaged { at: self.at };
        self.load(HEADER_BYTES)?;
        let Some(header) = self.header() else { return Err(damaged) };
        let bytes = header.end().since(self.at);
        if header.lsn != self.at || !self.log.geometry.holds(header.lsn, header.payload_bytes) {
            return Err(damaged);
        }
        self.load(bytes)?;
        let start = self.at.since(self.loaded.0) as usize;
        let whole = &self.buffer.bytes()[start..start + bytes as usize];
        match is_whole(&self.log.sealer, &header, whole) {
            true => Ok(header),
            false => Err(damaged),
        }
    }

    fn header(&self) -> Option<FrameHeader> {
        let start = self.at.since(self.loaded.0) as usize;
        let bytes = self.buffer.bytes()[start..].first_chunk()?;
        decode(&self.log.sealer, bytes).ok()
    }

    /// Makes the buffer hold so many bytes from the cursor's position on. They lie in one span.
    fn load(&mut self, bytes: u64) -> Result<(), CursorError> {
        let (start, end) = self.loaded;
        if start <= self.at && self.at.advance(bytes) <= end {
            return Ok(());
        }
        let from = self.at.align_down(BLOCK_BYTES);
        let needed = self.at.advance(bytes).align_up(BLOCK_BYTES);
        let limit = self.log.geometry.span_end(self.at).min(self.log.marks().durable);
        if needed > limit {
            return Err(CursorError::Damaged { at: self.at });
        }
        let to = from.advance(READ_BYTES).min(limit).max(needed);
        self.read(from, to)
    }

    fn read(&mut self, from: Lsn, to: Lsn) -> Result<(), CursorError> {
        let bytes = to.since(from) as usize;
        if self.buffer.bytes().len() < bytes {
            self.buffer = Buffer::zeroed(bytes);
        }
        self.loaded = (from, from);
        let number = self.log.geometry.segment_of(from);
        let segment = self.log.segments.find(number);
        let segment = segment.ok_or_else(|| self.truncated())?;
        let read = segment.read(from, &mut self.buffer.bytes_mut()[..bytes]);
        // Looked at afterwards: a file that is written anew meanwhile is no longer needed by then.
        if self.at < self.log.first() {
            return Err(self.truncated());
        }
        read.map_err(CursorError::Io)?;
        self.loaded = (from, to);
        Ok(())
    }

    fn truncated(&self) -> CursorError {
        CursorError::Truncated { first: self.log.first() }
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Cursor").field("at", &self.at).finish_non_exhaustive()
    }
}

impl fmt::Display for CursorError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { first } => {
                write!(out, "the log begins at LSN {first} now; go on from there")
            }
            Self::Damaged { at } => write!(out, "there is no whole frame at LSN {at}"),
            Self::Io(error) => write!(out, "the log's device cannot be read: {error}"),
        }
    }
}

impl std::error::Error for CursorError {}
