//! Making a log.
//!
//! Promise: there is a log exactly when its catalogue is there, and then every segment is
//! allocated, zeroed and synced.
//! Never: overwrites a log, or anything that is not its own.

use std::io;
use std::path::Path;

use holdfast_core::Lsn;
use holdfast_io::{DirEntry, Files, OpenHow};

use crate::catalogue::{CATALOGUE, CATALOGUE_NEW, Catalogue, Entry};
use crate::config::LogConfig;
use crate::error::CreateError;
use crate::pace::Pace;
use crate::segment::{Segment, SegmentHeader, is_segment_name};

/// The generation of segments made by `create`; opens count from 1.
const CREATED: u32 = 0;

/// Name of the file that holds the label.
const LABEL: &str = "label";
/// Longest label.
pub(crate) const LABEL_BYTES_MAX: usize = 4096;

/// See [`crate::Log::create_labelled`]. An empty label is none.
pub(crate) fn create(
    files: &dyn Files,
    identity: [u8; 16],
    config: &LogConfig,
    label: &[u8],
) -> Result<(), CreateError> {
    assert!(label.len() <= LABEL_BYTES_MAX, "a label is short");
    config.check().map_err(CreateError::Config)?;
    check_place(files)?;
    let (segment_bytes, parity) = (config.segment_bytes, config.parity);
    let entries = (0..config.segments).map(|file| Entry { file, number: u64::from(file) });
    let catalogue = Catalogue {
        identity,
        segment_bytes,
        first: Lsn::ZERO,
        durable: Lsn::ZERO,
        generations_below: CREATED + 1,
        parity,
        entries: entries.collect(),
        holes: Vec::new(),
    };
    for Entry { file, number } in &catalogue.entries {
        let segment =
            Segment::make(files, *file, catalogue.shape(), Pace::Full).map_err(CreateError::Io)?;
        let header =
            SegmentHeader { identity, generation: CREATED, number: *number, segment_bytes };
        segment.write_header(&header).map_err(CreateError::Io)?;
    }
    put_label(files, label).map_err(CreateError::Io)?;
    files.sync_dir(Path::new("")).map_err(CreateError::Io)?;
    catalogue.replace(files).map_err(CreateError::Io)
}

/// See [`crate::Log::label_of`].
pub(crate) fn label_of(files: &dyn Files) -> io::Result<Vec<u8>> {
    let file = match files.open(Path::new(LABEL), OpenHow::default()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut label = vec![0; LABEL_BYTES_MAX];
    let got = file.read_full_at(&mut label, 0)?;
    label.truncate(got);
    Ok(label)
}

/// Needs no rename: until there is a catalogue, nobody looks at it.
pub(crate) fn put_label(files: &dyn Files, label: &[u8]) -> io::Result<()> {
    if label.is_empty() {
        return Ok(());
    }
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(Path::new(LABEL), how)?;
    file.set_len(label.len() as u64)?;
    file.write_all_at(label, 0)?;
    file.sync_data()
}

/// Nothing may be here but what an interrupted attempt left.
pub(crate) fn check_place(files: &dyn Files) -> Result<(), CreateError> {
    let entries = files.read_dir(Path::new("")).map_err(CreateError::Io)?;
    let name = |entry: &DirEntry| String::from_utf8_lossy(&entry.name).into_owned();
    if entries.iter().any(|entry| name(entry) == CATALOGUE) {
        return Err(CreateError::Exists);
    }
    let own = |name: &str| name == CATALOGUE_NEW || name == LABEL || is_segment_name(name);
    match entries.iter().map(name).find(|name| !own(name)) {
        Some(name) => Err(CreateError::NotEmpty { name }),
        None => Ok(()),
    }
}
