//! Making a log.
//!
//! Promise: there is a log exactly when its catalogue is there, and then every segment is
//! allocated, zeroed and synced.
//! Never: overwrites a log, or anything that is not its own.

use std::path::Path;

use holdfast_core::Lsn;
use holdfast_io::Files;

use crate::catalogue::{CATALOGUE, CATALOGUE_NEW, Catalogue, Entry};
use crate::config::LogConfig;
use crate::error::CreateError;
use crate::segment::{Segment, SegmentHeader, is_segment_name};

/// The generation of segments made by `create`; opens count from 1.
const CREATED: u32 = 0;

/// See [`crate::Log::create`].
pub(crate) fn create(
    files: &dyn Files,
    identity: [u8; 16],
    config: &LogConfig,
) -> Result<(), CreateError> {
    config.check().map_err(CreateError::Config)?;
    check_place(files)?;
    let segment_bytes = config.segment_bytes;
    let entries = (0..config.segments).map(|file| Entry { file, number: u64::from(file) });
    let catalogue = Catalogue {
        identity,
        segment_bytes,
        first: Lsn::ZERO,
        durable: Lsn::ZERO,
        generations_below: CREATED + 1,
        entries: entries.collect(),
    };
    for Entry { file, number } in &catalogue.entries {
        let segment = Segment::make(files, *file, segment_bytes).map_err(CreateError::Io)?;
        let header =
            SegmentHeader { identity, generation: CREATED, number: *number, segment_bytes };
        segment.write_header(&header).map_err(CreateError::Io)?;
    }
    files.sync_dir(Path::new("")).map_err(CreateError::Io)?;
    catalogue.replace(files).map_err(CreateError::Io)
}

/// Nothing may be here but what an interrupted attempt left.
fn check_place(files: &dyn Files) -> Result<(), CreateError> {
    for entry in files.read_dir(Path::new("")).map_err(CreateError::Io)? {
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        if name == CATALOGUE {
            return Err(CreateError::Exists);
        }
        if name != CATALOGUE_NEW && !is_segment_name(&name) {
            return Err(CreateError::NotEmpty { name });
        }
    }
    Ok(())
}
