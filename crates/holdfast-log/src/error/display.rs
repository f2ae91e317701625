//! Errors as sentences: what happened, and what to do.
//!
//! Promise: every sentence names the file, position or size that the error carries.
//! Never: more than one line.

use std::error::Error;
use std::fmt::{Display, Formatter, Result};

use super::{AppendError, CommitError, ConfigFault, CreateError, FileFault, OpenError};

impl Display for ConfigFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::SegmentBytes { found } => write!(
                out,
                "segment_bytes is {found}: it must be a power of two from 64 KiB to 1 GiB"
            ),
            Self::Segments { found } => {
                write!(out, "segments is {found}: it must be from 2 to 4096")
            }
        }
    }
}

impl Display for CreateError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Config(fault) => fault.fmt(out),
            Self::Exists => write!(out, "there is a log here already: open it"),
            Self::NotEmpty { name } => {
                write!(out, "{name} is here: a log needs a directory of its own")
            }
            Self::Io(error) => write!(out, "the log could not be made: {error}"),
        }
    }
}

impl Display for FileFault {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Length { found } => write!(out, "has a wrong length, {found} bytes"),
            Self::Magic => write!(out, "does not begin as such a file does"),
            Self::Check => write!(out, "is damaged: its check does not match"),
            Self::Foreign => write!(out, "belongs to another log"),
            Self::Contents => write!(out, "is whole but says what cannot be"),
        }
    }
}

impl Display for OpenError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::NoLog => write!(out, "there is no log here: no file named catalogue"),
            Self::OtherVersion { found, known } => write!(
                out,
                "the log has format version {found}, this program knows {known}: use the program \
                 that made it"
            ),
            Self::File { name, fault } => write!(out, "{name} {fault}: restore it"),
            Self::MissingSegment { name } => write!(out, "{name} is missing: restore it"),
            Self::Corrupt { from, to } => write!(
                out,
                "acknowledged data is damaged from position {from} to {to}: restore the log's files; \
                 nothing was changed"
            ),
            Self::ForeignRegion { .. } => {
                write!(out, "the memory region belongs to another log: use a new one")
            }
            Self::StaleRegion { region, log } => write!(
                out,
                "the memory region is of generation {region}, the log went on without it at {log}: \
                 save the region, then use a new one"
            ),
            Self::Marks(fault) => {
                write!(out, "the marks in the memory region contradict each other ({fault:?})")
            }
            Self::RingTooSmall { ring_bytes, needed_bytes } => write!(
                out,
                "the ring has {ring_bytes} bytes, this log needs {needed_bytes}: use a larger region"
            ),
            Self::InUse => write!(out, "this region already serves an open log"),
            Self::Io(error) => write!(out, "the log could not be read or written: {error}"),
        }
    }
}

impl Display for AppendError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::TooLarge { payload_bytes, payload_bytes_max } => write!(
                out,
                "a payload of {payload_bytes} bytes is too large, at most {payload_bytes_max}: split it"
            ),
            Self::Full => write!(out, "the ring is full or too much is dirty: wait for room"),
            Self::Poisoned(error) => {
                write!(out, "the log is closed by an earlier failure: {error}")
            }
        }
    }
}

impl Display for CommitError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Poisoned(error) => write!(out, "the log could not be made durable: {error}"),
            Self::Unprepared(error) => {
                write!(out, "no segment could be prepared: {error}; make space and try again")
            }
        }
    }
}

impl Error for ConfigFault {}
impl Error for FileFault {}

impl Error for CreateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(fault) => Some(fault),
            Self::Io(error) => Some(error),
            Self::Exists | Self::NotEmpty { .. } => None,
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::File { fault, .. } => Some(fault),
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl Error for AppendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Poisoned(error) => Some(&**error),
            Self::TooLarge { .. } | Self::Full => None,
        }
    }
}

impl Error for CommitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Poisoned(error) | Self::Unprepared(error) => Some(&**error),
        }
    }
}
