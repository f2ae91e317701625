//! Moments in the past of a store.
//!
//! Promise: a moment is the end of a frame, so no group of records is cut.
//! Never: looks for anything.

use holdfast_log::Lsn;

use crate::stream::frame_index::FramePlace;
use crate::stream::rsn::Rsn;

/// Which moment is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The end of all records that there are.
    End,
    /// The last one that has no record at this place or behind it.
    Rsn(Rsn),
    /// The last one whose frames lie before this position of the log. The log of a store that was
    /// restored begins anew: what is behind that has a place or a time, but no such position.
    Lsn(Lsn),
    /// The last one before a frame that was made later than this, in nanoseconds since 1970, UTC.
    /// Frames are known to the millisecond.
    Time(i64),
}

/// The end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Where the first record behind it stands.
    pub rsn: Rsn,
    /// Where the next frame lies at the earliest.
    pub lsn: Lsn,
    /// When the frame was made, in nanoseconds since 1970, UTC.
    pub utc_ns: i64,
}

impl Moment {
    pub(crate) fn begin_of(frame: &FramePlace) -> Moment {
        Moment { rsn: frame.first, lsn: frame.lsn, utc_ns: frame.utc_ns }
    }

    pub(crate) fn end_of(frame: &FramePlace) -> Moment {
        Moment { rsn: frame.end, lsn: frame.lsn_end, utc_ns: frame.utc_ns }
    }
}

impl At {
    /// Whether this is behind all that there is, which ends so.
    pub(crate) fn is_behind(self, end: Moment) -> bool {
        match self {
            At::End => false,
            At::Rsn(rsn) => rsn > end.rsn,
            At::Lsn(lsn) => lsn > end.lsn,
            At::Time(utc_ns) => utc_ns > end.utc_ns,
        }
    }

    /// Whether a moment is not behind this.
    pub(crate) fn has(self, moment: Moment) -> bool {
        match self {
            At::End => true,
            At::Rsn(rsn) => moment.rsn <= rsn,
            At::Lsn(lsn) => moment.lsn <= lsn,
            At::Time(utc_ns) => moment.utc_ns <= utc_ns,
        }
    }
}
