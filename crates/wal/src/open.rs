//! Making a log and opening it.
//!
//! Promise: everything that was durable is there afterwards, and nothing that was cut off; the
//! ring is memory of this process alone.
//! Never: opens a log as what it is not.

pub(crate) mod any;
pub(crate) mod label;
pub(crate) mod opened_keys;
pub(crate) mod outline;
pub(crate) mod record_type;
pub(crate) mod recovery;
pub(crate) mod survey;

use std::sync::Arc;

use holdfast_log::{CommitError, ConfigFault, Log, RING_BYTES_MAX, Verdict, Watch};
use holdfast_memory::{Medium, Region, RegionSpec};

use crate::error::{CreateError, OpenError};
use crate::open::label::Label;
use crate::open::record_type::RecordType;
use crate::open::recovery::Recovery;
use crate::options::Options;
use crate::place::Place;
use crate::sealing::Seal;
use crate::shared::Shared;
use crate::wrapping::Wrapping;

/// The smallest roster: an embedded log has no notes.
const ROSTER_BYTES: u64 = 64;
/// The smallest ring.
const RING_BYTES_MIN: u64 = 4096;

/// Makes a log with the label that `label` gives to an identity.
pub(crate) fn create(
    place: &Place,
    options: &Options,
    label: impl FnOnce([u8; 16], &Options) -> Label,
) -> Result<(), CreateError> {
    Seal::check(options)?;
    ring_bytes(options).map_err(CreateError::Options)?;
    let mut identity = [0; 16];
    place.entropy.fill(&mut identity);
    let label = label(identity, options).encode();
    Log::create_labelled(&*place.files, identity, &options.config(), &label)?;
    Ok(())
}

/// Opens a log that has the label that `label` gives to its identity.
pub(crate) fn open(
    place: Place,
    options: &Options,
    label: impl FnOnce([u8; 16], &Options) -> Label,
) -> Result<(Shared, Recovery), OpenError> {
    let (identity, wrapping) = recognize(&place, options, label)?;
    let (log, region, found) = open_untyped(&place, options, identity)?;
    // What is not proved to be on the device is written once more. From here on it counts, and
    // readers see it.
    log.commit(found.tail)?;
    let log = Arc::new(log);
    check_keys(&log, &wrapping)?;
    begin_generation(&log)?;
    let recovery = Recovery {
        checkpoint: found.released,
        end: found.tail,
        torn: match found.verdict {
            Verdict::Torn { at } => Some(at),
            _ => None,
        },
        bytes_scanned: found.bytes_scanned,
        mended: found.mended,
        lost: found.lost,
        remade: found.remade,
    };
    Ok((Shared::new(log, region, wrapping, place.clock, place.lock), recovery))
}

/// Every key that is here is the one that sealed sets under its id, if there are such sets: see
/// [`crate::open::opened_keys`].
fn check_keys(log: &Arc<Log>, wrapping: &Wrapping) -> Result<(), OpenError> {
    let wrong = opened_keys::wrong(log, wrapping);
    wrong.map_or(Ok(()), |id| Err(OpenError::WrongKey { id }))
}

/// Makes it durable that another generation has begun: whatever an earlier one left behind the end,
/// in a cache or on the device, is none of the log from then on. A disk without room for that has
/// no room for remains either.
fn begin_generation(log: &Log) -> Result<(), OpenError> {
    match log.commit(log.marks().tail) {
        Err(CommitError::Unprepared(_)) => Ok(()),
        begun => Ok(begun?),
    }
}

/// Begins to watch a log that has this label.
pub(crate) fn watch(
    place: &Place,
    options: &Options,
    label: impl FnOnce([u8; 16], &Options) -> Label,
) -> Result<(Watch, Shared), OpenError> {
    let (identity, wrapping) = recognize(place, options, label)?;
    watch_as(place, identity, wrapping)
}

/// Begins to watch a log as what it says of itself, which may be nothing.
pub(crate) fn watch_any(
    place: &Place,
    options: &Options,
) -> Result<(Watch, Shared, Option<RecordType>), OpenError> {
    let identity = Log::identity_of(&*place.files)?;
    let records = RecordType::told_at(&*place.files)?;
    let wrapping = match &records {
        Some(records) => recognize(place, options, |log, options| records.label(log, options))?.1,
        None => Wrapping::of_unlabelled(options, identity)?,
    };
    let (watch, shared) = watch_as(place, identity, wrapping)?;
    Ok((watch, shared, records))
}

fn watch_as(
    place: &Place,
    identity: [u8; 16],
    wrapping: Wrapping,
) -> Result<(Watch, Shared), OpenError> {
    let (watch, region) = watch_untyped(place, identity)?;
    let (log, clock) = (Arc::clone(watch.log()), Arc::clone(&place.clock));
    Ok((watch, Shared::new(log, region, wrapping, clock, place.lock.clone())))
}

/// Begins to watch a log without looking at its records.
pub(crate) fn watch_untyped(
    place: &Place,
    identity: [u8; 16],
) -> Result<(Watch, Arc<Region>), OpenError> {
    let region = region(identity, RING_BYTES_MIN)?;
    let (files, clock) = (Arc::clone(&place.files), Arc::clone(&place.clock));
    Ok((Watch::open(files, Arc::clone(&region), clock)?, region))
}

/// The log's identity, and what is done to its sets, if it is what it is opened as.
fn recognize(
    place: &Place,
    options: &Options,
    label: impl FnOnce([u8; 16], &Options) -> Label,
) -> Result<([u8; 16], Wrapping), OpenError> {
    let identity = Log::identity_of(&*place.files)?;
    let key = label(identity, options).check(&*place.files)?;
    Ok((identity, Wrapping::of(options, key, identity)?))
}

/// Opens the log with a ring as large as the options say, or as it says itself.
fn open_untyped(
    place: &Place,
    options: &Options,
    identity: [u8; 16],
) -> Result<(Log, Arc<Region>, holdfast_log::Recovery), OpenError> {
    let mut ring_bytes = ring_bytes(options).map_err(OpenError::Options)?;
    loop {
        let region = region(identity, ring_bytes)?;
        let (files, clock) = (Arc::clone(&place.files), Arc::clone(&place.clock));
        match Log::open(files, Arc::clone(&region), clock, options.config()) {
            Ok((log, recovery)) => return Ok((log, region, recovery)),
            Err(holdfast_log::OpenError::RingTooSmall { needed_bytes, .. })
                if needed_bytes > ring_bytes =>
            {
                ring_bytes = needed_bytes.next_power_of_two();
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The ring that the options ask for.
fn ring_bytes(options: &Options) -> Result<u64, ConfigFault> {
    let found = options.ring_bytes;
    let rounded = found.max(RING_BYTES_MIN).checked_next_power_of_two();
    rounded.filter(|it| *it <= RING_BYTES_MAX).ok_or(ConfigFault::RingBytes { found })
}

fn region(identity: [u8; 16], ring_bytes: u64) -> Result<Arc<Region>, OpenError> {
    let spec = RegionSpec { ring_bytes, roster_bytes: ROSTER_BYTES, identity };
    let region =
        Region::create(&Medium::Private, &spec).map_err(|_| OpenError::Memory { ring_bytes })?;
    region.populate();
    Ok(Arc::new(region))
}
