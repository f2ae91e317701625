//! A copy of the pages of a store in use, and the records to bring it to one moment.
//!
//! Promise: a backup is one when its manifest is there, and from then on at every moment, also
//! while it is brought forward, unless a page is torn then; each page in it was sound when it was
//! copied.
//! Never: holds up whoever reads or writes; writes into the store, but for what it archives.

pub(crate) mod backup_run;
pub(crate) mod manifest;
pub(crate) mod moment;
pub(crate) mod past;
pub(crate) mod restore;
pub(crate) mod restoring;

use std::path::Path;
use std::sync::Arc;

use crate::archive::Archive;
use crate::archive::run_copy::copy_run;
use crate::archive::run_format::RunSpan;
use crate::archive::run_reader::Run;
use crate::backup::manifest::Manifest;
use crate::clean::sweep::{Brought, Sweep};
use crate::directories::{Directories, PAGES};
use crate::error::{BackupError, FetchError, OpenArchiveError};
use crate::page::page_file::PageFile;
use crate::page::{PAGE_BYTES, Page};
use crate::progress::Progress;
use crate::repair::fetch::Fetch;
use crate::stream::rsn::{PageNumber, Rsn};
use crate::stream::tag::Tag;

/// Pages that are written at once.
const SEGMENT_PAGES: u64 = 64;

/// Copies the pages of a store in use, which has cleaned them up to `begin`; `archive` is called
/// once they are copied, and gives all records then.
pub(crate) fn back_up(
    fetch: &Fetch,
    begin: Rsn,
    archive: &dyn Fn() -> Result<Archive, BackupError>,
    to: &Directories,
    tag: Tag,
    tell: &mut dyn FnMut(Progress),
) -> Result<Manifest, BackupError> {
    if Manifest::read(&*to.store, tag)?.is_some() {
        return Err(BackupError::NotEmpty);
    }
    let pages = fetch.follower.next_page().get();
    let mut progress = Progress { done_bytes: 0, total_bytes: pages * PAGE_BYTES as u64 };
    let last = copy_pages(fetch, to, pages, tag, &mut |bytes| progress.advance(bytes, tell))?;
    let archive = archive()?;
    for run in runs_to_copy(&archive, begin, to)? {
        copy_run(run, run.span().end, &run.state()?, &to.archive, tag)?;
    }
    let end = archive.end().unwrap_or(Rsn::FIRST);
    let manifest = Manifest { begin, end, newest: begin.max(last.advance(1)) };
    manifest.write(&*to.store, tag)?;
    Ok(manifest)
}

/// Copies the pages before number `end`, and returns the last record that any of them has.
fn copy_pages(
    fetch: &Fetch,
    to: &Directories,
    end: u64,
    tag: Tag,
    tell_bytes: &mut dyn FnMut(u64),
) -> Result<Rsn, BackupError> {
    let file = PageFile::open(&*to.store, Path::new(PAGES), tag, SEGMENT_PAGES)?;
    let mut last = Rsn::NONE;
    for first in (0..end).step_by(SEGMENT_PAGES as usize) {
        let numbers = first.max(1)..end.min(first + SEGMENT_PAGES);
        let pages = numbers.map(|number| copy_of(fetch, PageNumber(number)));
        let mut pages = pages.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
        last = pages.iter().map(Page::rsn).fold(last, Rsn::max);
        file.write_all(&mut pages)?;
        tell_bytes((end.min(first + SEGMENT_PAGES) - first) * PAGE_BYTES as u64);
    }
    file.sync()?;
    Ok(last)
}

/// The page as it is on its device, or as its records make it if that does not serve; none if there
/// is no such page.
fn copy_of(fetch: &Fetch, number: PageNumber) -> Result<Option<Page>, BackupError> {
    let mut page = Page::zeroed();
    if fetch.image(number, &mut page)? {
        return Ok(Some(page));
    }
    page.clear();
    match fetch.load(number, &mut page) {
        Ok(_) => Ok(Some(page)),
        Err(FetchError::NoSuchPage(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The runs with records at `begin` or behind it that are not there, and the one before: the state
/// at the end is found from the last one.
fn runs_to_copy<'a>(
    archive: &'a Archive,
    begin: Rsn,
    to: &Directories,
) -> Result<Vec<&'a Arc<Run>>, BackupError> {
    let there = to.archive.read_dir(Path::new(""))?;
    let there: Vec<_> = there.iter().filter_map(|entry| RunSpan::of_name(&entry.name)).collect();
    let is_needed = |run: &&Arc<Run>| run.span().end >= begin && !there.contains(&run.span());
    Ok(archive.runs().iter().filter(is_needed).collect())
}

/// Brings the pages of a backup to the end of an archive, which has all records behind those that
/// they have. `tell` is told how far it is.
pub(crate) fn forward(
    fetch: &Fetch,
    archive: Archive,
    backup: &Directories,
    tag: Tag,
    tell: &mut dyn FnMut(Progress),
) -> Result<Manifest, BackupError> {
    let manifest = Manifest::read(&*backup.store, tag)?.ok_or(BackupError::NoBackup)?;
    let (from, end) = (manifest.begin, archive.end().unwrap_or(Rsn::FIRST));
    if let Some(to) = archive.begin().filter(|to| *to > from) {
        return Err(OpenArchiveError::MissingRun { from, to }.into());
    }
    let pages = fetch.follower.next_page().get();
    let runs = runs_to_copy(&archive, from, backup)?;
    let run_bytes: u64 = runs.iter().map(|run| run.bytes()).sum();
    let total_bytes = run_bytes + pages * PAGE_BYTES as u64;
    let mut progress = Progress { done_bytes: 0, total_bytes };
    for run in runs {
        copy_run(run, run.span().end, &run.state()?, &backup.archive, tag)?;
        progress.advance(run.bytes(), tell);
    }
    // First: pages are newer than the backup said from now on, as far as it is told.
    Manifest { end, newest: end, ..manifest }.write(&*backup.store, tag)?;
    let sweep = Sweep::new(archive, PageNumber(1), from, Arc::clone(&fetch.contents))?;
    bring_pages(sweep, backup, pages, tag, &mut |bytes| progress.advance(bytes, tell))?;
    let manifest = Manifest { begin: end, end, newest: end };
    manifest.write(&*backup.store, tag)?;
    remove_runs(backup, end)?;
    Ok(manifest)
}

/// Brings the pages forward that the walk meets, which are all before number `end`.
fn bring_pages(
    mut sweep: Sweep,
    backup: &Directories,
    end: u64,
    tag: Tag,
    tell_bytes: &mut dyn FnMut(u64),
) -> Result<(), BackupError> {
    let file = PageFile::open(&*backup.store, Path::new(PAGES), tag, SEGMENT_PAGES)?;
    let (mut brought, mut passed) = (Vec::new(), 0);
    while let Some(number) = sweep.next_page() {
        let mut page = Page::zeroed();
        // What cannot be read is nothing, from which a page can be built as well.
        let _ = file.read(number, &mut page);
        match sweep.bring(number, &mut page)? {
            Brought::Forward(_) | Brought::Rebuilt(_) => brought.push(page),
            Brought::Nothing => {}
            Brought::Lost(_) => return Err(BackupError::Lost(number)),
        }
        if brought.len() as u64 >= SEGMENT_PAGES {
            file.write_all(&mut brought)?;
            brought.clear();
            tell_bytes((number.get() - passed) * PAGE_BYTES as u64);
            passed = number.get();
        }
    }
    file.write_all(&mut brought)?;
    file.sync()?;
    tell_bytes((end - passed) * PAGE_BYTES as u64);
    Ok(())
}

/// Removes the runs that end before this place, the oldest first, so that no gap is left.
fn remove_runs(backup: &Directories, end: Rsn) -> Result<(), BackupError> {
    let there = backup.archive.read_dir(Path::new(""))?;
    let spans = there.iter().filter_map(|entry| RunSpan::of_name(&entry.name));
    let mut old: Vec<_> = spans.filter(|span| span.end < end).collect();
    old.sort_unstable_by_key(|span| (span.begin, span.end));
    Ok(old.iter().try_for_each(|span| backup.archive.remove_file(&span.path()))?)
}
