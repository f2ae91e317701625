//! Makes the pages of a store as they were at a moment, from an archive or a backup.
//!
//! Promise: what is made is opened as a store is that lost its page file, and its power: whatever
//! had not ended then is undone, and pages come back while it is in use. Cut short it is no store.
//! Never: changes what it is made from.

use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::Files;

use crate::archive::Archive;
use crate::backup::Manifest;
use crate::bases::Bases;
use crate::error::{OpenArchiveError, RestoreError};
use crate::moment::{At, Moment, state_at};
use crate::page::{PAGE_BYTES, Page};
use crate::page_file::PageFile;
use crate::pages::{Directories, PAGES};
use crate::places::FramePlace;
use crate::restoring::Restoring;
use crate::rsn::{PageNumber, Rsn};
use crate::run::RunWriter;
use crate::run_format::RunSpan;
use crate::run_reader::Run;
use crate::tag::Tag;

/// Pages that are copied at once.
const SEGMENT_PAGES: u64 = 64;

/// How far something is that takes long, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// So many are done.
    pub done_bytes: u64,
    /// Of so many.
    pub total_bytes: u64,
}

impl Progress {
    /// Tells that so many bytes more are done.
    pub(crate) fn advance(&mut self, bytes: u64, tell: &mut dyn FnMut(Progress)) {
        self.done_bytes += bytes;
        tell(*self);
    }
}

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
    let archive = Archive::look(&*from.archive, tag)?;
    let manifest = Manifest::read(&*from.store, tag)?;
    let moment = at.moment(&archive, manifest.map_or(Rsn::FIRST, |manifest| manifest.newest))?;
    refuse_if_incomplete(&archive, manifest)?;
    clear(to)?;
    let state = state_at(&archive, moment.rsn)?.clean();
    let runs = archive.runs().iter().filter(|run| run.span().begin < moment.rsn);
    let pages = if manifest.is_some() { state.next_page().get() } else { 0 };
    let run_bytes: u64 = runs.clone().map(|run| run.bytes()).sum();
    let total_bytes = run_bytes + pages * PAGE_BYTES as u64;
    let mut progress = Progress { done_bytes: 0, total_bytes };
    for run in runs {
        copy_run(run, moment.rsn, &to.archive, tag)?;
        progress.advance(run.bytes(), tell);
    }
    // First: what is not in the page file is missing then.
    Restoring::open(Arc::clone(&to.store), Path::new(PAGES))?.begin()?;
    if pages > 0 {
        let source = PageFile::open(&*from.store, Path::new(PAGES), tag, SEGMENT_PAGES)?;
        let target = PageFile::open(&*to.store, Path::new(PAGES), tag, SEGMENT_PAGES)?;
        copy_pages(&source, &target, pages, moment.rsn, &mut |bytes| {
            progress.advance(bytes, tell)
        })?;
    }
    to.store.sync_dir(Path::new(""))?;
    // Last: without a base there is no store.
    Bases::create(Arc::clone(&to.store), tag, &state)?;
    Ok(moment)
}

/// Without a page file all records from the first one on are needed; with one those behind it.
fn refuse_if_incomplete(
    archive: &Archive,
    manifest: Option<Manifest>,
) -> Result<(), OpenArchiveError> {
    let from = manifest.map_or(Rsn::FIRST, |manifest| manifest.begin);
    match archive.begin() {
        Some(to) if to > from => Err(OpenArchiveError::MissingRun { from, to }),
        _ => Ok(()),
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

/// Writes the records of a run that stand before `upto`, where a frame ends, into a run in another
/// directory. Everything that is read is checked.
pub(crate) fn copy_run(
    run: &Arc<Run>,
    upto: Rsn,
    to: &Arc<dyn Files>,
    tag: Tag,
) -> Result<(), RestoreError> {
    let mut span = run.span();
    span.end = span.end.min(upto);
    let mut copy = RunWriter::begin(Arc::clone(to), tag, span)?;
    if run.is_trimmed() {
        copy.trim();
    }
    let mut scan = run.scan(PageNumber(1))?;
    while let Some(entry) = scan.current() {
        if entry.rsn < span.end {
            copy.push(entry.page, entry.rsn, entry.bytes)?;
        }
        scan.advance()?;
    }
    let frames = run.frames()?.into_iter().filter(|frame| frame.first < span.end);
    Ok(copy.finish(&run.state()?, &frames.collect::<Vec<FramePlace>>())?)
}

/// Copies the pages before number `end` that are sound and have no record at `upto` or behind it,
/// and makes them durable.
fn copy_pages(
    from: &PageFile,
    to: &PageFile,
    end: u64,
    upto: Rsn,
    tell_bytes: &mut dyn FnMut(u64),
) -> Result<(), RestoreError> {
    for first in (0..end).step_by(SEGMENT_PAGES as usize) {
        let mut pages = Vec::new();
        for number in (first.max(1)..end.min(first + SEGMENT_PAGES)).map(PageNumber) {
            let mut page = Page::zeroed();
            if from.read(number, &mut page).is_ok() && page.rsn() < upto {
                pages.push(page);
            }
        }
        to.write_all(&mut pages)?;
        tell_bytes((end.min(first + SEGMENT_PAGES) - first) * PAGE_BYTES as u64);
    }
    Ok(to.sync()?)
}
