//! Logs of any type, as the bytes of their records: for tools.
//!
//! Promise: what a log says of its records is known before it is opened, and is what it says
//! afterwards; bytes that are appended are a record as they are.
//! Never: looks whether bytes are such a record. Whoever appends has seen to that.

use std::path::Path;

use crate::error::{CreateError, OpenError};
use crate::format::Raw;
use crate::log::Log;
use crate::open;
use crate::open::label::{self};
use crate::open::record_type::RecordType;
use crate::open::recovery::Recovery;
use crate::options::Options;
use crate::place::Place;

impl Log<Vec<u8>, Raw> {
    /// Makes a log of records of this type in `directory`, which is made unless it is there.
    ///
    /// # Errors
    /// See [`CreateError`].
    ///
    /// # Panics
    /// If one of the names is empty or longer than 255 bytes.
    pub fn create_any(
        directory: impl AsRef<Path>,
        records: &RecordType,
        options: &Options,
    ) -> Result<(), CreateError> {
        let names = label::is_name(&records.record) && label::is_name(&records.format);
        assert!(names, "a name has 1 to 255 bytes");
        let place = Place::new_directory(directory.as_ref())?;
        open::create(&place, options, |identity, options| records.label(identity, options))
    }

    /// Opens the log in `directory` as the bytes of its records, whatever they are.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_any(
        directory: impl AsRef<Path>,
        options: &Options,
    ) -> Result<(Self, Recovery, RecordType), OpenError> {
        let place = Place::directory(directory.as_ref())?;
        let records = RecordType::at(&*place.files)?;
        let label = |identity: [u8; 16], options: &Options| records.label(identity, options);
        let (log, recovery) = Self::open_labelled(place, options, label)?;
        Ok((log, recovery, records))
    }
}
