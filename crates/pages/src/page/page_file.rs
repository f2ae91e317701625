//! The pages of a store on their device.
//!
//! Promise: a page that is read was written there whole, or the difference has a name; whoever
//! reads a page while it is written gets the one before or the one after.
//! Never: repairs a page, or knows which one is the newest; takes a failed sync for anything but
//! the end of this open file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::{fmt, io};

use holdfast_io::{Files, OpenFile, OpenHow};

use crate::error::{ReadPageError, WritePagesError};
use crate::page::{PAGE_BYTES, Page, SECOND_HALF};
use crate::stream::rsn::PageNumber;
use crate::stream::tag::Tag;

/// Locks that all segments share; segments whose numbers are so far apart wait for each other.
const LOCKS: usize = 64;

/// The open page file. All calls may come from any thread.
pub struct PageFile {
    path: PathBuf,
    opened: Mutex<Opened>,
    tag: Tag,
    segment_pages: u64,
    /// One for each segment, or several: shared by who reads it, held alone by who writes it.
    locks: [RwLock<()>; LOCKS],
}

/// A file that was opened, and why it must be opened again.
#[derive(Clone)]
struct Opened {
    file: Arc<dyn OpenFile>,
    failed: Option<Arc<io::Error>>,
}

impl Opened {
    fn open(files: &dyn Files, path: &Path) -> io::Result<Opened> {
        let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
        Ok(Opened { file: files.open(path, how)?, failed: None })
    }
}

impl PageFile {
    /// Opens the file at `path`, and makes it if it is missing; its name is durable after the next
    /// `sync_dir` of the caller. A segment is `segment_pages` neighbours, beginning with a multiple
    /// of that.
    ///
    /// # Errors
    /// What the file system says; nothing changed.
    ///
    /// # Panics
    /// If a segment has no pages.
    pub fn open(
        files: &dyn Files,
        path: &Path,
        tag: Tag,
        segment_pages: u64,
    ) -> io::Result<PageFile> {
        assert!(segment_pages > 0, "a segment has pages");
        let opened = Mutex::new(Opened::open(files, path)?);
        let locks = std::array::from_fn(|_| RwLock::new(()));
        Ok(PageFile { path: path.to_owned(), opened, tag, segment_pages, locks })
    }

    /// Opens the file that has its name now, in the place of the one that is open, and makes it if
    /// it is missing. What was written since the last sync counts for nothing then.
    ///
    /// # Errors
    /// What the file system says; nothing changed.
    pub fn reopen(&self, files: &dyn Files) -> io::Result<()> {
        let opened = Opened::open(files, &self.path)?;
        *self.opened() = opened;
        Ok(())
    }

    /// How many pages a segment has.
    #[must_use]
    pub fn segment_pages(&self) -> u64 {
        self.segment_pages
    }

    /// The segment that a page is in.
    #[must_use]
    pub fn segment_of(&self, page: PageNumber) -> u64 {
        page.get() / self.segment_pages
    }

    /// The first page of a segment.
    #[must_use]
    pub fn first_of(&self, segment: u64) -> PageNumber {
        PageNumber(segment * self.segment_pages)
    }

    /// Reads page `number`. What lies behind the end of the file is zeros.
    ///
    /// # Errors
    /// See [`ReadPageError`]; `into` is as it was.
    pub fn read(&self, number: PageNumber, into: &mut Page) -> Result<(), ReadPageError> {
        let mut bytes = [0; PAGE_BYTES];
        self.read_into(number, &mut bytes).map_err(ReadPageError::Io)?;
        into.load(&bytes, number, self.tag).map_err(ReadPageError::Fault)
    }

    /// Writes pages, which must be neighbours in one segment, in one go. They are durable after
    /// [`PageFile::sync`].
    ///
    /// # Errors
    /// See [`WritePagesError`]. Each page may be the old one, the new one, or torn.
    ///
    /// # Panics
    /// If the pages are no neighbours, or lie in different segments.
    pub fn write(&self, pages: &mut [Page]) -> Result<(), WritePagesError> {
        self.write_but(pages, 0)
    }

    /// As [`PageFile::write`], without so many bytes at the end.
    fn write_but(&self, pages: &mut [Page], left_out_bytes: usize) -> Result<(), WritePagesError> {
        let file = self.sound()?;
        let Some(first) = pages.first().map(Page::number) else { return Ok(()) };
        let mut bytes = Vec::with_capacity(pages.len() * PAGE_BYTES);
        for (number, page) in (first.get()..).zip(pages.iter_mut()) {
            assert_eq!(page.number().get(), number, "pages that are written are neighbours");
            bytes.extend_from_slice(page.seal(self.tag));
        }
        bytes.truncate(bytes.len() - left_out_bytes);
        let segment = self.segment_of(first);
        let last = PageNumber(first.get() + pages.len() as u64 - 1);
        assert_eq!(self.segment_of(last), segment, "a write stays in its segment");
        let _alone = self.lock_of(segment).write().expect("nothing panics with a segment");
        let written = file.write_all_at(&bytes, offset(first));
        written.map_err(|error| WritePagesError::Io(Arc::new(error)))
    }

    /// As [`PageFile::write`], for pages that are in order and may be anywhere: those that are
    /// neighbours in one go.
    ///
    /// # Errors
    /// See [`WritePagesError`].
    pub fn write_all(&self, pages: &mut [Page]) -> Result<(), WritePagesError> {
        self.write_changed(pages, &[])
    }

    /// As [`PageFile::write_all`]. The file durably has the second half of the pages in `halved`,
    /// which are in order; it is left out where that does not make two writes of one.
    ///
    /// # Errors
    /// See [`WritePagesError`].
    pub(crate) fn write_changed(
        &self,
        pages: &mut [Page],
        halved: &[PageNumber],
    ) -> Result<(), WritePagesError> {
        let adjoin = |one: &Page, other: &Page| {
            let (one, other) = (one.number(), other.number());
            one.get() + 1 == other.get() && self.segment_of(one) == self.segment_of(other)
        };
        pages.chunk_by_mut(adjoin).try_for_each(|neighbours| {
            let last = neighbours.last().map(Page::number);
            let is_halved = last.is_some_and(|last| halved.binary_search(&last).is_ok());
            self.write_but(neighbours, if is_halved { PAGE_BYTES - SECOND_HALF } else { 0 })
        })
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// See [`WritePagesError`]; after this has failed once, this open file takes no more writes.
    pub fn sync(&self) -> Result<(), WritePagesError> {
        let Err(error) = self.sound()?.sync_data() else { return Ok(()) };
        let failed = Arc::new(error);
        self.opened().failed = Some(Arc::clone(&failed));
        Err(WritePagesError::Failed(failed))
    }

    /// The open file, if no sync of it has failed.
    fn sound(&self) -> Result<Arc<dyn OpenFile>, WritePagesError> {
        let Opened { file, failed } = self.opened().clone();
        failed.map_or(Ok(file), |error| Err(WritePagesError::Failed(error)))
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().expect("nothing panics with the open file")
    }

    /// Reads from a page on, within its segment.
    fn read_into(&self, from: PageNumber, into: &mut [u8]) -> io::Result<()> {
        let _shared = self.shared(self.segment_of(from));
        let file = Arc::clone(&self.opened().file);
        let found = file.read_full_at(into, offset(from))?;
        into[found..].fill(0);
        Ok(())
    }

    fn shared(&self, segment: u64) -> RwLockReadGuard<'_, ()> {
        self.lock_of(segment).read().expect("nothing panics with a segment")
    }

    fn lock_of(&self, segment: u64) -> &RwLock<()> {
        &self.locks[(segment % LOCKS as u64) as usize]
    }
}

impl fmt::Debug for PageFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("PageFile");
        out.field("segment_pages", &self.segment_pages).field("failed", &self.opened().failed);
        out.finish_non_exhaustive()
    }
}

fn offset(page: PageNumber) -> u64 {
    page.get() * PAGE_BYTES as u64
}

#[cfg(test)]
mod tests;
