//! Looking at a log without opening it, and saving what is left of one, whatever its records are.
//!
//! Promise: a log that somebody has open is not changed; the log that is looked at is not changed;
//! sets stay whole or are lost as a whole, and which records of a lost one can still be read is
//! said.
//! Never: knows the type of a record, or needs a key.

use std::path::Path;

use holdfast_log::{FrameHeader, Log, Lsn, LsnRange, RepairEvent, Verified, Walked};

use crate::error::{LabelFault, OpenError, RepairError};
use crate::open::label::Label;
use crate::payload::{is_checked, take};
use crate::place::Place;

/// What a repair kept and lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Sets that were kept, and the log's own marks and padding with them.
    pub frames: u64,
    /// The position at which the log begins.
    pub first: Lsn,
    /// The position at which it ends.
    pub end: Lsn,
    /// What parity gave back, in order.
    pub mended: Vec<LsnRange>,
    /// What is lost, now or by an earlier cut, in order.
    pub lost: Vec<LsnRange>,
    /// The sets among the lost whose beginning is whole, in order.
    pub broken: Vec<BrokenSet>,
    /// Whether files were missing, short or older than others, so that what is said of them was
    /// found out from the segments. What lay behind the last set that is left is not known then.
    pub rebuilt: bool,
}

/// A set that is lost because some of it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokenSet {
    /// Where it began.
    pub lsn: Lsn,
    /// Records it had.
    pub records: u16,
    /// Those that are whole all the same, by their number in the set, from 0. Of a set that was
    /// sealed or compressed none can be told.
    pub readable: Vec<u16>,
}

/// Reads every set in the log in `directory` that is still needed, also behind damage, and all of
/// its parity; `progress` hears of it now and then. Nothing is changed.
///
/// # Errors
/// [`OpenError::InUse`] if somebody has the log open; else as [`crate::Log::open`]. Damage is no
/// error but [`Verified::damaged`].
pub fn verify(
    directory: impl AsRef<Path>,
    progress: &mut dyn FnMut(Walked),
) -> Result<Verified, OpenError> {
    verify_at(&Place::directory(directory.as_ref())?, progress)
}

/// [`verify`], anywhere.
///
/// # Errors
/// See [`verify`].
pub fn verify_at(place: &Place, progress: &mut dyn FnMut(Walked)) -> Result<Verified, OpenError> {
    Ok(Log::verify(&*place.files, progress)?)
}

/// Makes a new log in the directory `to` from what can be read of the one in `from`, or only says
/// what it would be, if there is no `to`. Every set keeps its position, so checkpoints and the
/// positions of tickets hold in the new log as in the old. The old log is not changed.
///
/// # Errors
/// See [`RepairError`].
pub fn repair(
    from: impl AsRef<Path>,
    to: Option<&Path>,
    progress: &mut dyn FnMut(Walked),
) -> Result<Repaired, RepairError> {
    let from = Place::directory(from.as_ref()).map_err(|e| RepairError::Source(e.into()))?;
    let to = to.map(|to| Place::new_directory(to).map_err(|e| RepairError::Target(e.into())));
    repair_at(&from, to.transpose()?.as_ref(), progress)
}

/// [`repair`], anywhere.
///
/// # Errors
/// See [`RepairError`].
pub fn repair_at(
    from: &Place,
    to: Option<&Place>,
    progress: &mut dyn FnMut(Walked),
) -> Result<Repaired, RepairError> {
    check_label(from).map_err(RepairError::Source)?;
    let mut broken = Vec::new();
    let target = to.map(|to| &*to.files);
    let done = Log::repair(&*from.files, target, &mut |event| match event {
        RepairEvent::Walked(walked) => progress(walked),
        RepairEvent::BrokenFrame { header, payload } if header.records > 0 => {
            broken.push(broken_set(header, payload));
        }
        _ => {}
    })?;
    let holdfast_log::Repaired { frames, first, end, mended, lost, rebuilt, .. } = done;
    Ok(Repaired { frames, first, end, mended, lost, broken, rebuilt })
}

/// A log with another's label is not made: nothing would open it.
fn check_label(from: &Place) -> Result<(), OpenError> {
    match (Label::read(&*from.files), Log::identity_of(&*from.files)) {
        (Ok(label), Ok(log)) if label.identity != log => Err(OpenError::Label(LabelFault::Foreign)),
        _ => Ok(()),
    }
}

/// Which records of a set are whole, as far as it can be followed from one to the next. A record
/// that is a set by itself has no check but that of its frame, which failed.
fn broken_set(header: &FrameHeader, payload: &[u8]) -> BrokenSet {
    let FrameHeader { lsn, records, .. } = *header;
    let (mut readable, mut at) = (Vec::new(), 0);
    for index in (0..records).filter(|_| records > 1) {
        let Some((bytes, next)) = take(payload, records, at) else { break };
        if is_checked(payload, bytes) {
            readable.push(index);
        }
        at = next;
    }
    BrokenSet { lsn, records, readable }
}
