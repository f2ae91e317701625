//! What is done to a set between its records and its frame: compressed, then sealed.
//!
//! Promise: a reader gets the bytes that were appended, at a multiple of 8, or is told why not; in
//! a sealed log it gets none that are not sealed.
//! Never: copies a set of a log that is neither compressed nor sealed.

use holdfast_log::{AppendError, Appended, Contents, FLAG_COMPRESSED, Frame, Log};

use crate::compression::{Compression, with_packed};
use crate::error::OpenError;
use crate::key_mark::KeyMark;
use crate::options::Options;
use crate::sealing::Seal;

mod opener;

pub(crate) use opener::Opener;

/// What is done to the sets of one log.
pub(crate) struct Wrapping {
    compression: Compression,
    seal: Option<Seal>,
    made_with: Option<u32>,
    /// Whether its sets are told apart into records: those of a log without a label are not.
    has_records: bool,
}

impl Wrapping {
    /// As the options say, for the log whose label has this mark.
    pub(crate) fn of(
        options: &Options,
        mark: Option<KeyMark>,
        identity: [u8; 16],
    ) -> Result<Wrapping, OpenError> {
        let seal = Seal::of(options, mark, identity)?;
        let made_with = mark.map(|mark| mark.id);
        let compression = options.compression;
        Ok(Wrapping { compression, seal, made_with, has_records: true })
    }

    /// Of a log without a label: what its sets hold is known to whoever appends them.
    pub(crate) fn of_unlabelled(
        options: &Options,
        identity: [u8; 16],
    ) -> Result<Wrapping, OpenError> {
        Ok(Wrapping { has_records: false, ..Wrapping::of(options, None, identity)? })
    }

    /// How many records the set of a frame is read as.
    #[inline]
    pub(crate) fn records_of(&self, frame: &Frame<'_>) -> u16 {
        if self.has_records { frame.header.records } else { 1 }
    }

    /// The id of the key that the label knows again, if the log is sealed and there are others.
    pub(crate) fn made_with_one_of_several(&self) -> Option<u32> {
        let (seal, id) = (self.seal.as_ref()?, self.made_with?);
        seal.has_others(id).then_some(id)
    }

    /// The longest set of a log.
    pub(crate) fn set_bytes_max(&self, log: &Log) -> u64 {
        let payload_bytes_max = log.payload_bytes_max();
        self.seal.as_ref().map_or(payload_bytes_max, |_| Seal::set_bytes_max(payload_bytes_max))
    }

    /// Appends a set as one frame.
    pub(crate) fn append(
        &self,
        log: &Log,
        records: u16,
        set: &[u8],
    ) -> Result<Appended, AppendError> {
        if self.compression == Compression::None && self.seal.is_none() {
            return log.append(records, &[set]);
        }
        let (payload_bytes, payload_bytes_max) = (set.len() as u64, self.set_bytes_max(log));
        if payload_bytes > payload_bytes_max {
            return Err(AppendError::TooLarge { payload_bytes, payload_bytes_max });
        }
        with_packed(self.compression, set, |packed| match packed {
            Some(packed) => self.put(log, Contents { records, flags: FLAG_COMPRESSED }, packed),
            None => self.put(log, Contents { records, flags: 0 }, set),
        })
    }

    fn put(&self, log: &Log, contents: Contents, bytes: &[u8]) -> Result<Appended, AppendError> {
        match &self.seal {
            Some(seal) => seal.append(log, contents, bytes),
            None => {
                let copy = &mut |_, _, into: &mut [u8]| into.copy_from_slice(bytes);
                log.append_filled(contents, bytes.len() as u64, copy)
            }
        }
    }
}
