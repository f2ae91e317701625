//! What stands for sealing in a program that was built without it.
//!
//! Promise: a sealed log is told from one that is not, and is not opened.
//! Never: is there: no value of these types is.

use std::ops::Range;

use holdfast_log::{AppendError, Appended, Contents, Frame, Log};

use crate::aligned::Aligned;
use crate::error::{CreateError, OpenError, ReplayError};
use crate::key_mark::KeyMark;
use crate::options::Options;

pub(crate) enum Seal {}

pub(crate) enum Ciphers {}

impl Seal {
    pub(crate) fn check(_: &Options) -> Result<(), CreateError> {
        Ok(())
    }

    pub(crate) fn mark(_: &Options, _: [u8; 16]) -> Option<KeyMark> {
        None
    }

    pub(crate) fn of(
        _: &Options,
        mark: Option<KeyMark>,
        _: [u8; 16],
    ) -> Result<Option<Seal>, OpenError> {
        mark.map_or(Ok(None), |_| Err(OpenError::Sealed))
    }

    pub(crate) fn reading(&self) -> Ciphers {
        match *self {}
    }

    pub(crate) fn has_others(&self, _: u32) -> bool {
        match *self {}
    }

    pub(crate) fn set_bytes_max(payload_bytes_max: u64) -> u64 {
        payload_bytes_max
    }

    pub(crate) fn append(&self, _: &Log, _: Contents, _: &[u8]) -> Result<Appended, AppendError> {
        match *self {}
    }
}

pub(crate) fn open(
    ciphers: &mut Ciphers,
    _: &Frame<'_>,
    _: u64,
    _: &mut Aligned,
) -> Result<Range<usize>, ReplayError> {
    match *ciphers {}
}
