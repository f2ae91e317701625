//! The way back: from a frame to the records of its set.
//!
//! Promise: a frame is opened once, however many records are taken from it.
//! Never: gives out what the cipher or the compression did not vouch for.

use std::ops::Range;

use holdfast_log::{FLAG_COMPRESSED, FLAG_SEALED, Frame, Log, Lsn};

use super::Wrapping;
use crate::aligned::Aligned;
use crate::compression::{UnpackFault, unpack};
use crate::error::ReplayError;
use crate::sealing::{self, Ciphers};

/// A reader's memory for one opened set.
pub(crate) struct Opener {
    ciphers: Option<Ciphers>,
    /// Position and generation of the frame that is open, and where its set lies.
    opened: Option<(Lsn, u32, Found)>,
    unsealed: Aligned,
    unpacked: Aligned,
}

/// Where the set of a frame lies.
enum Found {
    Unsealed(Range<usize>),
    Unpacked,
}

impl Opener {
    pub(crate) fn new(wrapping: &Wrapping) -> Opener {
        Opener {
            ciphers: wrapping.seal.as_ref().map(super::Seal::reading),
            opened: None,
            unsealed: Aligned::default(),
            unpacked: Aligned::default(),
        }
    }

    /// Opens a frame, unless it is open.
    pub(crate) fn open(&mut self, log: &Log, frame: &Frame<'_>) -> Result<(), ReplayError> {
        let plain = frame.header.flags == 0 && self.ciphers.is_none();
        if plain || self.is_open(frame) {
            return Ok(());
        }
        self.opened = None;
        let unsealed = self.unseal(log, frame)?;
        let found = match frame.header.flags & FLAG_COMPRESSED {
            0 => unsealed.map(Found::Unsealed),
            _ => Some(self.unpack(log, frame, unsealed)?),
        };
        self.opened = found.map(|found| (frame.header.lsn, frame.header.generation, found));
        Ok(())
    }

    /// The set of a frame that was opened.
    pub(crate) fn set<'a>(&'a self, frame: &Frame<'a>) -> &'a [u8] {
        match &self.opened {
            Some((.., Found::Unsealed(range))) if self.is_open(frame) => {
                &self.unsealed.bytes()[range.clone()]
            }
            Some((.., Found::Unpacked)) if self.is_open(frame) => self.unpacked.bytes(),
            _ => frame.payload,
        }
    }

    fn is_open(&self, frame: &Frame<'_>) -> bool {
        let place = (frame.header.lsn, frame.header.generation);
        self.opened.as_ref().is_some_and(|opened| (opened.0, opened.1) == place)
    }

    /// Where the set lies in memory of the opener; None if it is not sealed, and need not be.
    fn unseal(
        &mut self,
        log: &Log,
        frame: &Frame<'_>,
    ) -> Result<Option<Range<usize>>, ReplayError> {
        let lsn = frame.header.lsn;
        let sealed = frame.header.flags & FLAG_SEALED != 0;
        match &mut self.ciphers {
            Some(ciphers) if sealed => {
                let segment = log.segment_number(lsn);
                sealing::open(ciphers, frame, segment, &mut self.unsealed).map(Some)
            }
            Some(_) => Err(ReplayError::NotSealed { lsn }),
            None if sealed => Err(ReplayError::Sealed { lsn }),
            None => Ok(None),
        }
    }

    fn unpack(
        &mut self,
        log: &Log,
        frame: &Frame<'_>,
        unsealed: Option<Range<usize>>,
    ) -> Result<Found, ReplayError> {
        let lsn = frame.header.lsn;
        let packed = unsealed.map_or(frame.payload, |range| &self.unsealed.bytes()[range]);
        match unpack(packed, log.payload_bytes_max(), &mut self.unpacked) {
            Ok(()) => Ok(Found::Unpacked),
            Err(UnpackFault::Damaged) => Err(ReplayError::DamagedRecord { lsn, index: 0 }),
            Err(UnpackFault::Absent) => Err(ReplayError::Compressed { lsn }),
        }
    }
}
