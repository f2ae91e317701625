//! Reading durable frames from the device, as far back as the log goes.
//!
//! Long runs are read ahead by threads of the cursor's own.
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
use holdfast_core::frame::{BLOCK_BYTES, FrameHeader, HEADER_BYTES, Kind, NUMBER_BYTES, decode};

use crate::format::catalogue::behind_gap;
use crate::open::recovery::is_whole;
use crate::range::LsnRange;
use crate::read::ahead::Piece;
use crate::read::frames::Frame;
use crate::read::window::{PIECE_BYTES, Window};
use crate::state::Log;

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
    /// The end of the log was cut off below where the cursor is. What it has read from `from` on is
    /// no longer there; a new cursor can go on from there.
    Cut {
        /// The first position that was cut off.
        from: Lsn,
    },
    /// The device could not be read. Nothing is known of the frame; try again.
    Io(io::Error),
}

/// A reader of a log, with a position. Several may read at once.
pub struct Cursor {
    log: Arc<Log>,
    at: Lsn,
    /// Below this everything is durable; more may be by now.
    durable: Lsn,
    window: Window,
    /// The header of the frame that was loaded last. It stays here: handed from function to
    /// function it would be stored in small pieces and loaded in large ones, and each load would
    /// wait.
    header: FrameHeader,
    /// Where the records of the frame that was given out last begin, and where they lie in the
    /// window. That frame is the one that was loaded last.
    given: Option<(Lsn, usize, usize)>,
    /// Which cuts it knows of.
    seen: u64,
    /// Where there is nothing of the log.
    gaps: Vec<LsnRange>,
}

impl Cursor {
    pub(crate) fn new(log: Arc<Log>, from: Lsn) -> Cursor {
        let (window, seen) = (Window::new(), log.cuts.seen());
        let (header, gaps) = (no_frame(from), log.segments.gaps());
        Cursor { log, at: from, durable: from, window, header, given: None, seen, gaps }
    }

    /// Where the next frame starts, once there is one.
    #[must_use]
    #[inline]
    pub fn position(&self) -> Lsn {
        self.at
    }

    /// The next frame as its user appended it; None if no more are durable.
    ///
    /// # Errors
    /// See [`CursorError`].
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CursorError> {
        self.given = None;
        while self.is_below_durable()? {
            self.load_frame()?;
            self.at = self.header.end();
            if let Some(skipped) = before_records(&self.header) {
                let payload_lsn = self.header.payload_lsn().advance(skipped);
                let start = self.window.offset(payload_lsn);
                let end = start + (u64::from(self.header.payload_bytes) - skipped) as usize;
                self.given = Some((payload_lsn, start, end));
                break;
            }
        }
        Ok(self.current())
    }

    /// The frame that [`Cursor::next_frame`] returned last, once more. None if it returned none.
    #[must_use]
    #[inline]
    pub fn current(&self) -> Option<Frame<'_>> {
        let (payload_lsn, start, end) = self.given?;
        let payload = &self.window.bytes()[start..end];
        Some(Frame { header: self.header, payload, payload_lsn })
    }

    /// The payload of that frame alone; nothing if there is none.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &[u8] {
        match self.given {
            Some((_, start, end)) => &self.window.bytes()[start..end],
            None => &[],
        }
    }

    /// Sleeps until the next frame is durable, or until the timeout; returns whether one is. Of a
    /// log that failed no more will be.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        self.log.wait_durable(self.at, timeout)
    }

    /// Whether the next frame is durable. The marks are looked at only when what was known of them
    /// is used up.
    #[inline]
    fn is_below_durable(&mut self) -> Result<bool, CursorError> {
        self.at = behind_gap(&self.gaps, self.at).unwrap_or(self.at);
        if self.at >= self.durable {
            self.look_for_cuts()?;
            self.durable = self.log.marks().durable;
            self.gaps = self.log.segments.gaps();
            self.at = behind_gap(&self.gaps, self.at).unwrap_or(self.at);
        }
        Ok(self.at < self.durable)
    }

    /// Forgets what it has in memory if that may have been cut off.
    fn look_for_cuts(&mut self) -> Result<(), CursorError> {
        if self.log.cuts.are_seen(self.seen) {
            return Ok(());
        }
        let (from, seen) = self.log.cuts.since(self.seen);
        if let Some(from) = from.filter(|from| *from < self.at) {
            return Err(CursorError::Cut { from });
        }
        self.window.clear();
        (self.seen, self.gaps) = (seen, self.log.segments.gaps());
        Ok(())
    }

    /// Goes to another boundary of frames.
    pub(crate) fn seek(&mut self, lsn: Lsn) {
        self.at = lsn;
    }

    /// Where a reader begins that has applied nothing.
    pub(crate) fn first(&self) -> Lsn {
        self.log.first()
    }

    /// Walks over the frames of the last span below a boundary, all of which are in memory then;
    /// adds where those with records begin, and returns where the first of all does.
    pub(crate) fn walk_span_below(
        &mut self,
        below: Lsn,
        places: &mut Vec<Lsn>,
    ) -> Result<Lsn, CursorError> {
        self.seek(below);
        self.look_for_cuts()?;
        let gap = self.gaps.iter().find(|gap| gap.from < below && below <= gap.to);
        let (first, below) = (self.first(), gap.map_or(below, |gap| gap.from));
        if below <= first {
            return Ok(first);
        }
        let span_start = Lsn(below.get() - 1).align_down(self.log.geometry.span_bytes());
        let start = span_start.max(first);
        self.seek(start);
        self.load(below.since(start))?;
        while self.at < below {
            if let Some(to) = behind_gap(&self.gaps, self.at) {
                self.seek(to);
                continue;
            }
            let at = self.at;
            self.load_frame()?;
            self.at = self.header.end();
            if before_records(&self.header).is_some() {
                places.push(at);
            }
        }
        match self.at == below {
            true => Ok(start),
            false => Err(CursorError::Damaged { at: below }),
        }
    }

    /// Brings the frame at the cursor's position into the window, mended if need be, and checks it.
    #[inline]
    fn load_frame(&mut self) -> Result<(), CursorError> {
        match self.try_load_frame() {
            Err(CursorError::Damaged { at }) => self.load_damaged(at),
            outcome => outcome,
        }
    }

    /// While a cut is being made, stripe and parity may not agree: then looks again afterwards.
    #[cold]
    fn load_damaged(&mut self, at: Lsn) -> Result<(), CursorError> {
        loop {
            let outcome = self.load_mended(at);
            if self.log.cuts.are_seen(self.seen) {
                return outcome;
            }
            self.look_for_cuts()?;
            let outcome = self.try_load_frame();
            if !matches!(outcome, Err(CursorError::Damaged { .. })) {
                return outcome;
            }
        }
    }

    /// Mends what is in the window, as often as it takes to find out how long the frame is.
    fn load_mended(&mut self, at: Lsn) -> Result<(), CursorError> {
        let mut mended = None;
        while mended != Some(self.window.extent()) && self.rebuild() {
            mended = Some(self.window.extent());
            let outcome = self.try_load_frame();
            if !matches!(outcome, Err(CursorError::Damaged { .. })) {
                return outcome;
            }
        }
        Err(CursorError::Damaged { at })
    }

    fn rebuild(&mut self) -> bool {
        let (from, _) = self.window.extent();
        self.log.rebuild(from, self.window.change_from(from))
    }

    #[inline]
    fn try_load_frame(&mut self) -> Result<(), CursorError> {
        let damaged = CursorError::Damaged { at: self.at };
        self.load(HEADER_BYTES)?;
        let Some(header) = self.decoded() else { return Err(damaged) };
        if header.lsn != self.at || !self.log.geometry.holds(header.lsn, header.payload_bytes) {
            return Err(damaged);
        }
        self.load(header.end().since(self.at))?;
        match is_whole(&self.log.sealer, &header, self.window.from(self.at)) {
            true => self.header = header,
            false => return Err(damaged),
        }
        Ok(())
    }

    #[inline]
    fn decoded(&self) -> Option<FrameHeader> {
        let bytes = self.window.from(self.at).first_chunk()?;
        decode(&self.log.sealer, bytes).ok()
    }

    /// Makes the window hold so many bytes from the cursor's position on. They lie in one span.
    #[inline]
    fn load(&mut self, bytes: u64) -> Result<(), CursorError> {
        if self.window.from(self.at).len() as u64 >= bytes {
            return Ok(());
        }
        self.read(bytes)
    }

    /// Looks for a cut once more afterwards: what was read while one was made is not believed.
    #[cold]
    fn read(&mut self, bytes: u64) -> Result<(), CursorError> {
        loop {
            self.look_for_cuts()?;
            self.read_once(bytes)?;
            if self.log.cuts.are_seen(self.seen) {
                return Ok(());
            }
        }
    }

    fn read_once(&mut self, bytes: u64) -> Result<(), CursorError> {
        self.durable = self.log.marks().durable;
        let from = self.at.align_down(BLOCK_BYTES);
        let needed = self.at.advance(bytes).align_up(BLOCK_BYTES);
        let limit = self.log.geometry.span_end(self.at).min(self.durable);
        if needed > limit {
            return Err(CursorError::Damaged { at: self.at });
        }
        let wanted = from.get().saturating_add(self.window.appetite());
        let to = limit.min(Lsn(wanted).align_down(BLOCK_BYTES)).max(needed);
        let segment = self.log.segments.find(self.log.geometry.segment_of(from));
        let segment = segment.ok_or_else(|| self.truncated())?;
        let (log, durable) = (&self.log, self.durable);
        let next = |lsn| whole_piece(log, lsn, durable);
        let read = self.window.load(&Piece { segment, from, to }, needed, &next);
        // Looked at afterwards: a file that is written anew meanwhile is no longer needed by then.
        if self.at < self.log.first() {
            return Err(self.truncated());
        }
        read.map_err(CursorError::Io)
    }

    fn truncated(&self) -> CursorError {
        CursorError::Truncated { first: self.log.first() }
    }
}

/// What stands for a header while none was loaded.
fn no_frame(lsn: Lsn) -> FrameHeader {
    FrameHeader {
        lsn,
        durable: lsn,
        payload_bytes: 0,
        payload_check: 0,
        generation: 0,
        kind: Kind::Pad,
        flags: 0,
        records: 0,
        utc_ns: 0,
    }
}

/// How much of a payload lies before what its user appended; None if that is nothing at all.
#[inline]
fn before_records(header: &FrameHeader) -> Option<u64> {
    let number_bytes = NUMBER_BYTES as u64;
    match header.kind {
        Kind::Data => Some(0),
        Kind::Numbered => (u64::from(header.payload_bytes) >= number_bytes).then_some(number_bytes),
        Kind::Pad | Kind::Mark => None,
    }
}

/// What can be read ahead from the end of a block on, if all of it is durable.
fn whole_piece(log: &Log, from: Lsn, durable: Lsn) -> Option<Piece> {
    let to = from.advance(PIECE_BYTES).min(log.geometry.span_end(from));
    if to > durable {
        return None;
    }
    let segment = log.segments.find(log.geometry.segment_of(from))?;
    Some(Piece { segment, from, to })
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
            Self::Cut { from } => {
                write!(out, "the log was cut off at LSN {from}; what was read behind it is gone")
            }
            Self::Damaged { at } => write!(out, "there is no whole frame at LSN {at}"),
            Self::Io(error) => write!(out, "the log's device cannot be read: {error}"),
        }
    }
}

impl std::error::Error for CursorError {}
