//! Making a log.
//!
//! Promise: there is a log when its catalogue is there, and then every segment is allocated, zeroed
//! and synced.
//! Never: overwrites a log, what is left of one, or anything that is not its own.

use std::io;
use std::path::Path;

use holdfast_core::Lsn;
use holdfast_io::{DirEntry, Files, OpenHow};

use crate::config::{LogConfig, Parity};
use crate::error::{CreateError, OpenError};
use crate::format::catalogue::copies::{CATALOGUE_NEW, COPY, Copies, log_of};
use crate::format::catalogue::{CATALOGUE, Catalogue, Entry};
use crate::open::again::{AGAIN, Again};
use crate::segments::cut::{CUT_NEW, Cut};
use crate::segments::pace::Pace;
use crate::segments::segment::{
    LABEL_BYTES_MAX, Segment, SegmentHeader, is_segment_name, label_in, segment_names, used_segment,
};

/// The generation of segments made by `create`; opens count from 1.
const CREATED: u32 = 0;

/// Name of the file that holds the label of a log that an earlier version made.
const LABEL: &str = "label";

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
        cuts: Vec::new(),
    };
    if let Err(error) = make_files(files, &catalogue, label) {
        remove_half_made(files);
        return Err(CreateError::Io(error));
    }
    Copies::new().replace(files, &catalogue).map_err(CreateError::Io)
}

/// Everything but the catalogue itself.
fn make_files(files: &dyn Files, catalogue: &Catalogue, label: &[u8]) -> io::Result<()> {
    let Catalogue { identity, segment_bytes, parity, .. } = *catalogue;
    for Entry { file, number } in &catalogue.entries {
        let segment = Segment::make(files, *file, catalogue.shape(), Pace::Full)?;
        let header =
            SegmentHeader { identity, generation: CREATED, number: *number, segment_bytes };
        segment.write_header(&header, label)?;
    }
    keep_room(files, parity)?;
    files.sync_dir(Path::new(""))
}

/// What an attempt left that failed is of no use, and would keep the room. There is nothing else in
/// the place: that was looked at.
fn remove_half_made(files: &dyn Files) {
    for name in segment_names(files).unwrap_or_default() {
        // What cannot be removed is written over by the next attempt.
        let _ = files.remove_file(Path::new(&name));
    }
}

/// Makes the files that opening and cutting want room for, so that they have it on a full disk.
pub(crate) fn keep_room(files: &dyn Files, parity: Parity) -> io::Result<()> {
    Again::keep_room(files)?;
    Cut::keep_room(files, parity)
}

/// See [`crate::Log::label_of`]. Every segment has it.
pub(crate) fn label_of(files: &dyn Files) -> io::Result<Vec<u8>> {
    let identity = log_of(files)?;
    let mut unread = None;
    for name in segment_names(files)? {
        match label_in(files, &name, identity) {
            Ok(Some(label)) => return Ok(label),
            Ok(None) => {}
            Err(error) => unread = Some(error),
        }
    }
    unread.map_or(Ok(()), Err)?;
    let file = match files.open(Path::new(LABEL), OpenHow::default()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut label = vec![0; LABEL_BYTES_MAX];
    let got = file.read_full_at(&mut label, 0)?;
    label.truncate(got);
    Ok(label)
}

/// Nothing may be here but what an interrupted attempt left: segments without a frame.
pub(crate) fn check_place(files: &dyn Files) -> Result<(), CreateError> {
    let entries = files.read_dir(Path::new("")).map_err(CreateError::Io)?;
    let name = |entry: &DirEntry| String::from_utf8_lossy(&entry.name).into_owned();
    let listed = Catalogue::load(files);
    let none = matches!(listed, Err(OpenError::NoLog | OpenError::File { .. } | OpenError::Io(_)));
    if !none || entries.iter().any(|entry| name(entry) == CATALOGUE) {
        return Err(CreateError::Exists);
    }
    let known = [COPY, CATALOGUE_NEW, LABEL, AGAIN, CUT_NEW];
    let own = |name: &str| known.contains(&name) || is_segment_name(name);
    if let Some(name) = entries.iter().map(name).find(|name| !own(name)) {
        return Err(CreateError::NotEmpty { name });
    }
    match used_segment(files).map_err(CreateError::Io)? {
        Some(name) => Err(CreateError::Used { name }),
        None => Ok(()),
    }
}
