//! Recovery: where the log ends after a crash, and whether that end is honest.
//!
//! A scan walks frame by frame from a known boundary. Where it meets something that is not the next
//! frame, it looks at what lies behind for **witnesses**: whole headers of this log, at their own
//! positions, not of an older generation. A witness proves that the device was durable up to
//! * the watermark in its header, and
//! * the start of its span, because a span is drained only after the one before was synced.
//!
//! If what is damaged lies below what is proved, acknowledged bytes are damaged: **corrupt**. If
//! not, it is the remains of a write that was never acknowledged: **torn**, and the log ends there.
//! (The distinction is that of section 5, pitfall 6 of the project's log research: stopping at the
//! first bad frame loses acknowledged data, and failing on any later good frame refuses a legal
//! power cut. A watermark in every header tells the two apart.)
//!
//! Promise: with a device that keeps what it synced, the result is a prefix of what was appended
//! and holds all that was durable and witnessed; stale frames of earlier rounds and generations are
//! never taken for the log.
//! Never: takes damage below a proved watermark for the end; guesses about an I/O error (the caller
//! stops instead).

use crate::Lsn;
use crate::frame::FrameHeader;
use crate::ring::Geometry;

/// What lies at the position the scan asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A header that decodes, and whether its payload's check matched (only looked at where
    /// [`Scan::fits`] said so).
    Frame {
        /// The header.
        header: FrameHeader,
        /// Whether the payload is whole.
        payload_ok: bool,
    },
    /// No header of this log: zeros, or bytes of an earlier round of the same segment, or damage.
    /// Only witnesses can tell these apart.
    Nothing,
}

/// What the scan needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read what is at this position and call [`Scan::see`].
    Frame {
        /// The position.
        at: Lsn,
    },
    /// Call [`Scan::witness`] for every header that decodes from here on, then [`Scan::finish`].
    LookAhead {
        /// Where to begin.
        from: Lsn,
    },
}

/// How the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing lies behind the last frame.
    Clean {
        /// The end.
        end: Lsn,
    },
    /// Remains of an unacknowledged write lie behind the last frame.
    Torn {
        /// The end.
        end: Lsn,
    },
    /// Acknowledged bytes are damaged.
    Corrupt {
        /// First damaged position.
        from: Lsn,
        /// The first good frame behind it, or the watermark where there is none.
        to: Lsn,
    },
}

/// The walk.
#[derive(Clone, Copy, Debug)]
pub struct Scan {
    geometry: Geometry,
    at: Lsn,
    limit: Lsn,
    sealed: Lsn,
    generation: u32,
    watermark: Lsn,
    resumes: Option<Lsn>,
    stopped: Option<Stop>,
}

/// Why the walk stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// Nothing of this round is here.
    Nothing,
    /// A header that belongs here, or further on, but is not the next whole frame.
    Remains,
}

impl Scan {
    /// A scan from the frame boundary `from`, over segments that end at `limit`. `watermark` is
    /// what is known from elsewhere to have been durable; `from` if nothing is.
    #[must_use]
    pub fn new(geometry: Geometry, from: Lsn, limit: Lsn, watermark: Lsn) -> Scan {
        Scan {
            geometry,
            at: from,
            limit,
            sealed: from.align_down(crate::frame::BLOCK_BYTES),
            generation: 0,
            watermark: watermark.max(from),
            resumes: None,
            stopped: None,
        }
    }

    /// What is needed next.
    #[must_use]
    pub fn step(&self) -> Step {
        match self.stopped {
            None if self.at < self.limit => Step::Frame { at: self.at },
            _ => Step::LookAhead { from: self.at.advance(crate::frame::FRAME_ALIGN) },
        }
    }

    /// Whether a header found at the position asked for can be the next frame: worth reading its
    /// payload, whose length is then known to stay inside its span.
    #[must_use]
    pub fn fits(&self, header: &FrameHeader) -> bool {
        header.lsn == self.at
            && header.generation >= self.generation
            && self.geometry.holds(header.lsn, header.payload_bytes)
    }

    /// Takes what lies at the position asked for. Returns whether it is the next frame of the log.
    pub fn see(&mut self, seen: Seen) -> bool {
        match seen {
            Seen::Frame { header, payload_ok: true } if self.fits(&header) => {
                self.accept(&header);
                true
            }
            Seen::Frame { header, .. } if header.lsn >= self.at => self.stop(Stop::Remains),
            Seen::Frame { .. } | Seen::Nothing => self.stop(Stop::Nothing),
        }
    }

    /// Takes a header that decodes and lay at `at`, behind the place where the walk stopped.
    pub fn witness(&mut self, at: Lsn, header: &FrameHeader) {
        if header.lsn != at || at <= self.at || header.generation < self.generation {
            return;
        }
        let resumes = self.resumes.map_or(at, |known| known.min(at));
        self.resumes = Some(resumes);
        self.watermark = self.watermark.max(self.proved_by(header));
    }

    /// Everything has been looked at: how the log ends.
    #[must_use]
    pub fn finish(&self) -> Verdict {
        if self.watermark > self.at {
            let to = self.resumes.unwrap_or(self.watermark);
            return Verdict::Corrupt { from: self.at, to };
        }
        if self.stopped == Some(Stop::Remains) || self.resumes.is_some() {
            return Verdict::Torn { end: self.at };
        }
        Verdict::Clean { end: self.at }
    }

    /// Where the next frame is expected.
    #[must_use]
    pub const fn position(&self) -> Lsn {
        self.at
    }

    /// Everything below is known to have been durable.
    #[must_use]
    pub const fn proved(&self) -> Lsn {
        self.watermark
    }

    /// Whether looking further ahead could not change [`Verdict::Corrupt`].
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.resumes.is_some() && self.watermark > self.at
    }

    /// The bytes from where the walk stopped on have been mended: it goes on there.
    pub fn again(&mut self) {
        (self.stopped, self.resumes) = (None, None);
    }

    /// Nothing is expected between where the walk is and `to`: it goes on there.
    pub fn skip(&mut self, to: Lsn) {
        assert!(self.at < to);
        self.again();
        self.at = to;
        if to.is_aligned(crate::frame::BLOCK_BYTES) {
            self.sealed = to;
        }
    }

    /// The last block boundary at which a frame ended: the next drain starts here.
    #[must_use]
    pub fn sealed(&self) -> Lsn {
        self.sealed
    }

    /// The generation of the last frame.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// What a whole header of this log proves to have been durable.
    fn proved_by(&self, header: &FrameHeader) -> Lsn {
        header.durable.max(header.lsn.align_down(self.geometry.span_bytes()))
    }

    fn accept(&mut self, header: &FrameHeader) {
        self.watermark = self.watermark.max(self.proved_by(header));
        self.generation = header.generation;
        self.at = header.end();
        if self.at.is_aligned(crate::frame::BLOCK_BYTES) {
            self.sealed = self.at;
        }
    }

    fn stop(&mut self, stop: Stop) -> bool {
        self.stopped = Some(stop);
        false
    }
}

#[cfg(test)]
mod tests;
