//! Which pages of a page file that was lost are not there again yet.
//!
//! Promise: a page file is known to lack pages from before it is made until all of them are there,
//! through every crash in between.
//! Never: brings a page back; whoever cleans does, in order, and whoever loads one does without.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_io::{Files, OpenHow};

use crate::stream::rsn::PageNumber;

/// An empty file, which is there while pages are missing.
const MARKER: &str = "restoring";
/// What is left of the page file that was lost, until all pages are there: to remove a large file
/// takes longer than whoever waits for a page should.
const LOST: &str = "pages.lost";
/// Instead of a page: all of them are there.
const ALL: u64 = u64::MAX;

/// What is known of one page file. All calls may come from any thread.
pub(crate) struct Restoring {
    files: Arc<dyn Files>,
    /// Pages before this one are there.
    next: AtomicU64,
}

impl Restoring {
    /// Looks whether pages are missing: some because a restore was cut short, or all because there
    /// is no file at `pages`.
    pub(crate) fn open(files: Arc<dyn Files>, pages: &Path) -> io::Result<Restoring> {
        let is_marked = is_there(&*files, Path::new(MARKER))?;
        let restoring = Restoring { files, next: AtomicU64::new(if is_marked { 0 } else { ALL }) };
        if !is_there(&*restoring.files, pages)? {
            restoring.begin()?;
        }
        Ok(restoring)
    }

    /// Says, durably, that every page is missing.
    pub(crate) fn begin(&self) -> io::Result<()> {
        let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
        self.files.open(Path::new(MARKER), how)?;
        self.files.sync_dir(Path::new(""))?;
        self.next.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Takes away what is left of a page file, if anything is.
    pub(crate) fn put_aside(&self, pages: &Path) -> io::Result<()> {
        unless_missing(self.files.rename(pages, Path::new(LOST)))?;
        self.files.sync_dir(Path::new(""))
    }

    /// Whether pages are missing.
    pub(crate) fn is_on(&self) -> bool {
        self.next.load(Ordering::Relaxed) != ALL
    }

    /// Whether a page may be missing, so that it is no fault if it is.
    pub(crate) fn awaits(&self, page: PageNumber) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        next != ALL && next <= page.get()
    }

    /// Says that every page before this one is there, if it was missing.
    pub(crate) fn pass(&self, page: PageNumber) {
        self.next.store(page.get(), Ordering::Relaxed);
    }

    /// Says that every page is there, durably.
    pub(crate) fn end(&self) -> io::Result<()> {
        unless_missing(self.files.remove_file(Path::new(LOST)))?;
        self.files.remove_file(Path::new(MARKER))?;
        self.next.store(ALL, Ordering::Relaxed);
        self.files.sync_dir(Path::new(""))
    }
}

fn unless_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn is_there(files: &dyn Files, path: &Path) -> io::Result<bool> {
    match files.metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl std::fmt::Debug for Restoring {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Restoring").field("next", &self.next).finish_non_exhaustive()
    }
}
