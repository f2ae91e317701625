//! Which frame of the log holds which records.
//!
//! Promise: each record from the first frame that is still needed to the last one has its frame.
//! Never: reads a frame.

use std::collections::VecDeque;

use holdfast_log::Lsn;

use crate::stream::rsn::Rsn;

/// A frame, and the records in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePlace {
    /// Where its first record stands.
    pub first: Rsn,
    /// Where the first record behind it stands.
    pub end: Rsn,
    /// Where the frame lies.
    pub lsn: Lsn,
    /// Where the next frame lies at the earliest; once the log is durable to here, the frame is.
    pub lsn_end: Lsn,
    /// When it was made, nanoseconds since 1970, UTC; up to a moment before the time in its header.
    pub utc_ns: i64,
}

/// Frames that follow one another without a gap, in order.
#[derive(Debug, Default)]
pub(crate) struct FrameIndex(VecDeque<FramePlace>);

impl FrameIndex {
    /// These frames.
    ///
    /// # Panics
    /// If there is a gap between them, or behind them up to `end`.
    pub(crate) fn new(frames: Vec<FramePlace>, end: Rsn) -> FrameIndex {
        let mut places = FrameIndex::default();
        frames.into_iter().for_each(|place| places.push(place));
        assert!(places.end().is_none_or(|last| last == end), "the stream goes on where it ended");
        places
    }

    /// Adds the next frame.
    pub(crate) fn push(&mut self, place: FramePlace) {
        assert!(self.end().is_none_or(|end| end == place.first), "frames follow one another");
        self.0.push_back(place);
    }

    /// Where the last one ends.
    fn end(&self) -> Option<Rsn> {
        self.0.back().map(|place| place.end)
    }

    /// The frame with the last byte before `upto`; the first one if that is gone.
    pub(crate) fn with_byte_before(&self, upto: Rsn) -> Option<FramePlace> {
        self.0.get(self.0.partition_point(|place| place.end < upto)).copied()
    }

    /// Where the frames begin that hold `from` and what is behind it: the place of the first of
    /// them, or of the end of all.
    pub(crate) fn start_of(&self, from: Rsn) -> Option<Lsn> {
        let next = self.0.get(self.0.partition_point(|place| place.end <= from));
        next.map(|place| place.lsn).or_else(|| self.0.back().map(|place| place.lsn_end))
    }

    /// Where the frames that hold `from` and what is behind it begin and end, if they are all here
    /// and there is one.
    pub(crate) fn span_from(&self, from: Rsn) -> Option<(Lsn, Lsn)> {
        let last = self.0.back().filter(|last| last.end > from)?;
        let first = self.0.get(self.0.partition_point(|place| place.end <= from))?;
        (first.first <= from).then_some((first.lsn, last.lsn_end))
    }

    /// How far records are durable, if the log is to `durable`; none if the first frame is not.
    pub(crate) fn durable(&self, durable: Lsn) -> Option<Rsn> {
        let frames = self.0.partition_point(|place| place.lsn_end <= durable);
        Some(self.0.get(frames.checked_sub(1)?)?.end)
    }

    /// Where the first frame begins.
    pub(crate) fn first(&self) -> Option<Rsn> {
        self.0.front().map(|place| place.first)
    }

    /// Forgets the frames before this one.
    pub(crate) fn forget_below(&mut self, lsn: Lsn) {
        let frames = self.0.partition_point(|place| place.lsn < lsn);
        self.0.drain(..frames);
    }
}

#[cfg(test)]
mod tests;
