//! The log of a store in the store's own process.
//!
//! Promise: a ring that outlived the process that had it is taken over as it is; any other is
//! filled from the segments.
//! Never: starts a thread, or drains by itself.

use std::io;
use std::sync::Arc;

use holdfast_io::Files;
use holdfast_log::{ConfigFault, CreateError, Log, LogConfig, Lsn, Recovery};
use holdfast_memory::{AttachError, Medium, Region, RegionSpec};

use crate::error::OpenError;
use crate::face::place::Place;

/// A store has nothing to keep there.
const ROSTER_BYTES: u64 = 64;

/// How large a log is, and what its ring is made of.
#[derive(Clone, Copy)]
pub(crate) struct Sizes<'a> {
    pub(crate) memory: &'a Medium,
    pub(crate) ring_bytes: u64,
    pub(crate) segment_bytes: u64,
}

/// Whose log is there; none if no log was made yet.
pub(crate) fn identity_of(files: &dyn Files) -> Option<[u8; 16]> {
    Log::identity_of(files).ok()
}

/// Refuses sizes that no log has.
pub(crate) fn check(sizes: Sizes<'_>) -> Result<(), ConfigFault> {
    LogConfig::for_ring(sizes.ring_bytes, sizes.segment_bytes).map(drop)
}

/// Makes the log of a new store, over whatever an earlier attempt left.
pub(crate) fn create(
    files: &dyn Files,
    identity: [u8; 16],
    sizes: Sizes<'_>,
) -> Result<(), CreateError> {
    let config = LogConfig::for_ring(sizes.ring_bytes, sizes.segment_bytes);
    Log::create(files, identity, &config.map_err(CreateError::Config)?)
}

/// Opens the log of a store, which ends at `least` or behind it.
pub(crate) fn open(
    place: &Place,
    identity: [u8; 16],
    sizes: Sizes<'_>,
    least: Lsn,
) -> Result<(Arc<Log>, Recovery), OpenError> {
    look(&*place.log, sizes, least)?;
    let region = Arc::new(region(identity, sizes)?);
    let (files, clock) = (Arc::clone(&place.log), Arc::clone(&place.clock));
    let (log, recovery) = Log::open(files, region, clock, config(sizes)).map_err(OpenError::Log)?;
    refuse_older(recovery.tail, least)?;
    Ok((Arc::new(log), recovery))
}

/// Refuses what does not belong together, or is damaged, while log and memory are as they were
/// left: to take memory changes it. That of this process goes with it.
fn look(files: &dyn Files, sizes: Sizes<'_>, least: Lsn) -> Result<(), OpenError> {
    let seen = match Region::observe_to_attach(sizes.memory) {
        _ if *sizes.memory == Medium::Private => return Ok(()),
        Ok(seen) => Some(seen),
        Err(AttachError::Missing) => None,
        Err(error) => return Err(OpenError::Memory(io::Error::other(error))),
    };
    let log = Log::foresee(files, seen.as_ref(), &config(sizes)).map_err(OpenError::Log)?;
    refuse_older(log.tail, least)
}

fn refuse_older(end: Lsn, least: Lsn) -> Result<(), OpenError> {
    if end < least { Err(OpenError::OlderLog { end, least }) } else { Ok(()) }
}

fn config(sizes: Sizes<'_>) -> LogConfig {
    let Sizes { ring_bytes, segment_bytes, .. } = sizes;
    // The ring's worth of them, and the one that is got ready.
    let segments = ring_bytes / segment_bytes.max(1) + 1;
    let segments = u32::try_from(segments).unwrap_or(u32::MAX);
    LogConfig::in_ring(ring_bytes, segment_bytes, segments)
}

/// The ring as it was left, or a new one.
fn region(identity: [u8; 16], sizes: Sizes<'_>) -> Result<Region, OpenError> {
    let Sizes { memory, ring_bytes, .. } = sizes;
    if *memory != Medium::Private {
        match Region::attach(memory) {
            Ok(region) => return Ok(region),
            Err(AttachError::Missing) => {}
            Err(error) => return Err(OpenError::Memory(io::Error::other(error))),
        }
    }
    let spec = RegionSpec { ring_bytes, roster_bytes: ROSTER_BYTES, identity };
    Region::create(memory, &spec).map_err(|error| OpenError::Memory(io::Error::other(error)))
}
