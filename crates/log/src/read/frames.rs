//! Reading published frames where they lie in the ring.
//!
//! Promise: what is yielded stays readable while the [`Frames`] live: the ring is pinned.
//! Never: reads a file, copies a payload, yields a pad.

use holdfast_core::Lsn;
use holdfast_core::frame::{FrameHeader, HEADER_BYTES, Kind, NUMBER_BYTES, Sealer, decode};
use holdfast_memory::Pin;

/// One frame, in place.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its header.
    pub header: FrameHeader,
    /// Its payload.
    pub payload: &'a [u8],
    /// Where the payload lies in the log.
    pub payload_lsn: Lsn,
}

impl<'a> Frame<'a> {
    /// Where the next frame starts.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Lsn {
        self.header.end()
    }

    /// The number that a frame of [`Kind::Numbered`] has, and the frame as its user appended it.
    #[must_use]
    pub fn numbered(self) -> Option<(&'a [u8; NUMBER_BYTES], Frame<'a>)> {
        let (number, payload) = self.payload.split_first_chunk()?;
        let payload_lsn = self.payload_lsn.advance(NUMBER_BYTES as u64);
        (self.header.kind == Kind::Numbered)
            .then_some((number, Frame { payload, payload_lsn, ..self }))
    }

    /// The frame as its user appended it, whether numbered or not. None if it has no records.
    #[must_use]
    #[inline]
    pub fn of_user(self) -> Option<Frame<'a>> {
        match self.header.kind {
            Kind::Data => Some(self),
            Kind::Numbered => self.numbered().map(|(_, frame)| frame),
            Kind::Pad | Kind::Mark => None,
        }
    }
}

/// A pinned stretch of the ring. Iterate over a reference: `for frame in &log.frames(from, to)`.
pub struct Frames<'a> {
    pub(crate) pin: Pin<'a>,
    pub(crate) sealer: Sealer,
    pub(crate) from: Lsn,
    pub(crate) to: Lsn,
}

impl Frames<'_> {
    /// The frames of data and the marks, in order.
    #[must_use]
    pub fn iter(&self) -> FramesIter<'_> {
        FramesIter { frames: self, at: self.from }
    }

    /// The frame that starts here, of any kind. None if none does, or if it ends behind the
    /// stretch.
    pub(crate) fn get(&self, lsn: Lsn) -> Option<Frame<'_>> {
        let head = self.pin.get(lsn.get(), HEADER_BYTES as usize)?;
        let header = decode(&self.sealer, head.first_chunk()?).ok()?;
        if header.lsn != lsn || header.end() > self.to {
            return None;
        }
        let payload_lsn = header.payload_lsn();
        let payload = self.pin.get(payload_lsn.get(), header.payload_bytes as usize)?;
        Some(Frame { header, payload, payload_lsn })
    }
}

impl<'a> IntoIterator for &'a Frames<'_> {
    type Item = Frame<'a>;
    type IntoIter = FramesIter<'a>;

    fn into_iter(self) -> FramesIter<'a> {
        self.iter()
    }
}

/// See [`Frames::iter`].
pub struct FramesIter<'a> {
    frames: &'a Frames<'a>,
    at: Lsn,
}

impl<'a> Iterator for FramesIter<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        while self.at < self.frames.to {
            // Verified when the log was opened, or written by this process.
            let frame = self.frames.get(self.at).expect("published frames decode");
            self.at = frame.end();
            if frame.header.kind != Kind::Pad {
                return Some(frame);
            }
        }
        None
    }
}
