//! What the files of a log say of it to everybody.
//!
//! Promise: a log that somebody has open is not changed.
//! Never: opens a log, or needs a key.

use std::path::Path;

use holdfast_log::{Log, Lsn};

use crate::error::{LabelFault, OpenError};
use crate::open::label::Label;
use crate::open::record_type::RecordType;
use crate::open::watch_untyped;
use crate::place::Place;

/// What the files of a log say of it to everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outline {
    /// What it says of its records. None of a log that this crate did not make, which the server,
    /// a volume or a store uses: whoever does knows what they are.
    pub records: Option<RecordType>,
    /// Whether nobody reads them who has no keys.
    pub sealed: bool,
    /// The position at which it begins.
    pub first: Lsn,
    /// Everything below is durable; more may be.
    pub durable: Lsn,
}

/// What can be said of the log in `directory` without opening it, or having its keys.
///
/// # Errors
/// See [`OpenError`]; never [`OpenError::InUse`].
pub fn outline(directory: impl AsRef<Path>) -> Result<Outline, OpenError> {
    outline_at(&Place::unlocked(directory.as_ref())?)
}

fn outline_at(place: &Place) -> Result<Outline, OpenError> {
    let identity = Log::identity_of(&*place.files)?;
    let (sealed, records) = match Label::read(&*place.files) {
        Ok(label) => (label.key.is_some(), Some(label.into())),
        Err(OpenError::Label(LabelFault::Missing)) => (false, None),
        Err(error) => return Err(error),
    };
    let (watch, _) = watch_untyped(place, identity)?;
    let (first, durable) = (watch.log().first(), watch.log().marks().durable);
    Ok(Outline { sealed, records, first, durable })
}
