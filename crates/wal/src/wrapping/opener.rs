//! The way back: from a frame to the records of its set.
//!
//! Promise: a frame is opened once, however many records are taken from it.
//! Never: gives out what the cipher or the compression did not vouch for.

use std::ops::Range;

use holdfast_log::{FLAG_COMPRESSED, FLAG_SEALED, Frame, Log};

use super::Wrapping;
use crate::aligned::Aligned;
use crate::compression::{UnpackFault, unpack};
use crate::error::ReplayError;
use crate::sealing::{self, Ciphers, Seal};

/// A reader's memory for the set that it opened last.
pub(crate) struct Opener {
    ciphers: Option<Ciphers>,
    unsealed: Aligned,
    unpacked: Aligned,
    found: Found,
}

/// Where the set lies.
enum Found {
    Unsealed(Range<usize>),
    Unpacked,
}

impl Opener {
    pub(crate) fn new(wrapping: &Wrapping) -> Opener {
        Opener {
            ciphers: wrapping.seal.as_ref().map(Seal::reading),
            unsealed: Aligned::default(),
            unpacked: Aligned::default(),
            found: Found::Unpacked,
        }
    }

    /// Whether the set lies in its frame as it was appended.
    #[inline]
    pub(crate) fn is_plain(&self, frame: &Frame<'_>) -> bool {
        frame.header.flags == 0 && self.ciphers.is_none()
    }

    /// Opens a frame that is not plain.
    pub(crate) fn open(&mut self, log: &Log, frame: &Frame<'_>) -> Result<(), ReplayError> {
        let unsealed = self.unseal(log, frame)?;
        self.found = match unsealed {
            Some(range) if frame.header.flags & FLAG_COMPRESSED == 0 => Found::Unsealed(range),
            unsealed => self.unpack(log, frame, unsealed)?,
        };
        Ok(())
    }

    /// The set of the frame that was opened last.
    pub(crate) fn set(&self) -> &[u8] {
        match &self.found {
            Found::Unsealed(range) => &self.unsealed.bytes()[range.clone()],
            Found::Unpacked => self.unpacked.bytes(),
        }
    }

    /// Where the set lies once it is unsealed; None if it is not sealed, and need not be.
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
