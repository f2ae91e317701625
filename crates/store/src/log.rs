//! The log of a store, wherever it stands.
//!
//! Promise: a store is opened on the log that it was made with, or not at all; both kinds of log
//! look alike from here on.
//! Never: starts a thread, or drains by itself.

pub(crate) mod embedded;
pub(crate) mod served;

use std::sync::Arc;

use holdfast_client::LogClient;
use holdfast_log::{CommitError, CommitLog, CreateError, Log, Lsn, Marks, Spoilt};

use crate::error::OpenError;
use crate::face::config::LogPlace;
use crate::face::header::{Header, Names};
use crate::face::place::Place;
use crate::log::embedded::Sizes;

/// A part of the ring is archived at once, so that the log needs never wait for the archive. A
/// restart reads two windows and what was put since.
const WINDOWS_PER_RING: u64 = 16;
/// A frame of the server's has less than half a segment, and a ring two segments or more: so this
/// is an eighth of the ring or less.
const WINDOWS_PER_PAYLOAD: u64 = 2;

/// The open log of a store.
#[derive(Clone, Debug)]
pub(crate) enum StoreLog {
    /// It is this process's to keep, and has windows of so many bytes.
    Embedded(Arc<Log>, u64),
    Served(Arc<LogClient>),
}

/// Whose store was begun here, with a log of this kind; none if no log was made yet.
pub(crate) fn identity_of(place: &Place, log: &LogPlace) -> Option<[u8; 16]> {
    match log {
        LogPlace::Embedded { .. } => embedded::identity_of(&*place.log),
        LogPlace::Served { .. } => served::Owner::read(&*place.log).map(|owner| owner.identity),
    }
}

/// Says that a store is being made here, and makes its log, or takes one for it. Where that is
/// refused nothing is said any more, unless there is a log already that no other store can use.
pub(crate) fn begin(
    place: &Place,
    header: &Header,
    names: &Names,
    log: &LogPlace,
) -> Result<(), OpenError> {
    check(place, log)?;
    header.begin(&*place.store, names).map_err(OpenError::Io)?;
    let made = create(place, header.identity, log);
    if made.is_err() && identity_of(place, log).is_none() {
        Header::take_back(&*place.store, names);
    }
    made
}

/// Refuses sizes that no log has, before anything is made.
fn check(place: &Place, log: &LogPlace) -> Result<(), OpenError> {
    match log {
        LogPlace::Embedded { memory, ring_bytes, segment_bytes }
            if embedded::identity_of(&*place.log).is_none() =>
        {
            let sizes = Sizes { memory, ring_bytes: *ring_bytes, segment_bytes: *segment_bytes };
            let checked = embedded::check(sizes).map_err(CreateError::Config);
            checked.map_err(OpenError::CreateLog)
        }
        LogPlace::Embedded { .. } | LogPlace::Served { .. } => Ok(()),
    }
}

/// Makes the log of a new store, or takes one for it. Goes on where that was cut short.
fn create(place: &Place, identity: [u8; 16], log: &LogPlace) -> Result<(), OpenError> {
    match log {
        LogPlace::Served { socket, name } => served::create(&*place.log, identity, socket, name),
        LogPlace::Embedded { memory, ring_bytes, segment_bytes } => {
            refuse_served(place)?;
            if embedded::identity_of(&*place.log) == Some(identity) {
                return Ok(());
            }
            let sizes = Sizes { memory, ring_bytes: *ring_bytes, segment_bytes: *segment_bytes };
            embedded::create(&*place.log, identity, sizes).map_err(OpenError::CreateLog)
        }
    }
}

/// Opens the log of a store, which ends at `least` or behind it if it is the store's own and no
/// older copy. With what has been made again of an own one.
pub(crate) fn open(
    place: &Place,
    identity: [u8; 16],
    log: &LogPlace,
    least: Lsn,
) -> Result<(StoreLog, Vec<Spoilt>), OpenError> {
    match log {
        LogPlace::Embedded { memory, ring_bytes, segment_bytes } => {
            refuse_served(place)?;
            let sizes = Sizes { memory, ring_bytes: *ring_bytes, segment_bytes: *segment_bytes };
            let (log, recovery) = embedded::open(place, identity, sizes, least)?;
            let log = StoreLog::Embedded(log, (ring_bytes / WINDOWS_PER_RING).max(1));
            Ok((log, recovery.remade))
        }
        LogPlace::Served { socket, name } => {
            let log = served::open(&*place.log, identity, socket, name)?;
            Ok((StoreLog::Served(Arc::new(log)), Vec::new()))
        }
    }
}

fn refuse_served(place: &Place) -> Result<(), OpenError> {
    let is_served = served::Owner::read(&*place.log).is_some();
    if is_served { Err(OpenError::OtherLog) } else { Ok(()) }
}

impl StoreLog {
    /// As the pages use it.
    pub(crate) fn as_commit_log(&self) -> Arc<dyn CommitLog> {
        match self {
            StoreLog::Embedded(log, _) => Arc::clone(log) as _,
            StoreLog::Served(log) => Arc::clone(log) as _,
        }
    }

    /// How much of it is archived at once, in bytes.
    pub(crate) fn window_bytes(&self) -> u64 {
        match self {
            StoreLog::Embedded(_, window_bytes) => *window_bytes,
            StoreLog::Served(log) => (log.payload_bytes_max() / WINDOWS_PER_PAYLOAD).max(1),
        }
    }

    pub(crate) fn marks(&self) -> Marks {
        match self {
            StoreLog::Embedded(log, _) => log.marks(),
            StoreLog::Served(log) => log.marks(),
        }
    }

    /// What the log's device has from now on, if the log is this process's; else 0. That this
    /// opening has begun is there, too, unless the device refuses it.
    pub(crate) fn begun(&self) -> Lsn {
        let Some(log) = self.own() else { return Lsn(0) };
        // Whoever needs it durable is told by the next commit if it cannot be.
        let _ = log.commit(log.marks().tail);
        log.marks().durable
    }

    /// The log, if this process has to keep it.
    pub(crate) fn own(&self) -> Option<&Log> {
        match self {
            StoreLog::Embedded(log, _) => Some(log),
            StoreLog::Served(_) => None,
        }
    }

    /// Brings it to its device. True if there was something to bring; the server sees to its own.
    pub(crate) fn drain(&self) -> Result<bool, CommitError> {
        let Some(log) = self.own() else { return Ok(false) };
        log.drain().map(|drained| drained.bytes > 0)
    }

    /// Gets a segment ready. True if there was none; the server sees to its own.
    pub(crate) fn prepare(&self) -> Result<bool, CommitError> {
        self.own().map_or(Ok(false), Log::prepare)
    }

    /// Closes it in order, if it is this process's.
    pub(crate) fn close(&self) -> Result<(), CommitError> {
        self.own().map_or(Ok(()), Log::close)
    }
}
