//! Makes the pages of a store as they were at a moment, from an archive or a backup.
//!
//! Promise: what is made is opened as a store is that lost its page file, and its power: whatever
//! had not ended then is undone, and pages come back while it is in use. Its archive begins with
//! the first record, so each page can be built from it. Cut short it is no store.
//! Never: changes what it is made from.

use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::Files;

use crate::archive::Archive;
use crate::archive::run_copy::copy_run;
use crate::archive::run_format::RunSpan;
use crate::backup::backup_run::BackupRun;
use crate::backup::manifest::Manifest;
use crate::backup::moment::{At, Moment};
use crate::backup::past::state_at;
use crate::backup::restoring::Restoring;
use crate::directories::{Directories, PAGES};
use crate::error::{OpenArchiveError, RestoreError};
use crate::page::page_file::PageFile;
use crate::progress::Progress;
use crate::restart::analysis_state::State;
use crate::restart::bases::Bases;
use crate::stream::rsn::Rsn;
use crate::stream::tag::Tag;

/// Neighbours in a page file that is only read.
const SEGMENT_PAGES: u64 = 64;

/// Makes in `to`, which has no store, the pages of the store with this tag as they were at a
/// moment, and returns that. They are made from a backup, or from the archive of a store that is
/// closed; the log that they are opened with must be a new one. `tell` is told how far it is.
///
/// # Errors
/// See [`RestoreError`]. Whatever is there is no store then.
pub fn restore(
    from: &Directories,
    at: At,
    tag: Tag,
    to: &Directories,
    tell: &mut dyn FnMut(Progress),
) -> Result<Moment, RestoreError> {
    let (archive, manifest, moment) = foresee_restore(from, at, tag)?;
    clear(to)?;
    let state = state_at(&archive, moment.rsn)?.clean();
    if manifest.is_some() {
        let pages = PageFile::open(&*from.store, Path::new(PAGES), tag, SEGMENT_PAGES)?;
        let condensed = BackupRun { archive: &archive, pages: &pages, moment };
        condensed.write(&state, &to.archive, tag, tell)?;
    } else {
        copy_runs(&archive, &state, &to.archive, tag, tell)?;
    }
    // First: what is not in the page file is missing then.
    Restoring::open(Arc::clone(&to.store), Path::new(PAGES))?.begin()?;
    to.store.sync_dir(Path::new(""))?;
    // Last: without a base there is no store.
    Bases::create(Arc::clone(&to.store), tag, &state)?;
    Ok(moment)
}

/// What [`restore`] would go by, or why it would refuse. Nothing is made.
///
/// # Errors
/// See [`RestoreError`].
pub fn foresee_restore(
    from: &Directories,
    at: At,
    tag: Tag,
) -> Result<(Archive, Option<Manifest>, Moment), RestoreError> {
    let (archive, gap) = Archive::look_upto_gap(&*from.archive, tag)?;
    let manifest = Manifest::read(&*from.store, tag)?;
    // With all records since the first one nobody needs the pages; with those, what is behind them.
    let manifest = manifest.filter(|_| archive.begin() > Some(Rsn::FIRST));
    let moment = at.moment(&archive, manifest.map_or(Rsn::FIRST, |manifest| manifest.newest));
    let moment = match (moment, gap) {
        (moment, None) => moment?,
        (Ok(moment), Some(_)) if at != At::End => moment,
        // What was asked for is behind the gap, or may be.
        (_, Some(RunSpan { begin: from, end: to, .. })) => {
            return Err(OpenArchiveError::MissingRun { from, to }.into());
        }
    };
    let needed = manifest.map_or(Rsn::FIRST, |manifest| manifest.begin);
    match archive.begin() {
        Some(to) if to > needed => Err(OpenArchiveError::MissingRun { from: needed, to }.into()),
        _ => Ok((archive, manifest, moment)),
    }
}

/// Removes what was left of an attempt that was cut short.
fn clear(to: &Directories) -> Result<(), RestoreError> {
    if Bases::are_there(&*to.store)? {
        return Err(RestoreError::NotEmpty);
    }
    for entry in to.archive.read_dir(Path::new(""))? {
        if let Some(span) = RunSpan::of_name(&entry.name) {
            to.archive.remove_file(&span.path())?;
        }
    }
    match to.store.remove_file(Path::new(PAGES)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Copies the runs up to the place of this state.
fn copy_runs(
    archive: &Archive,
    state: &State,
    to: &Arc<dyn Files>,
    tag: Tag,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), RestoreError> {
    let (upto, mut state_bytes) = (state.at(), Vec::new());
    state.put_whole(&mut state_bytes);
    let runs = archive.runs().iter().filter(|run| run.span().begin < upto);
    let total_bytes = runs.clone().map(|run| run.bytes()).sum();
    let mut progress = Progress { done_bytes: 0, total_bytes };
    for run in runs {
        // The state at the end is found from the last run, and the records of one that is trimmed
        // do not lead there.
        let is_last = run.is_trimmed() && run.span().end == upto;
        let begun_with = if is_last { state_bytes.clone() } else { run.state()? };
        copy_run(run, upto, &begun_with, to, tag)?;
        progress.advance(run.bytes(), tell);
    }
    Ok(())
}
