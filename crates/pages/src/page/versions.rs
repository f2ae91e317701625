//! The file that says which record each page of the page file has got to.
//!
//! Byte table: FORMAT.md, "Versions".
//!
//! Promise: what is read is what was last written there, or the whole block is unknown; so an old
//! page that is whole in itself can be told from the newest one. So can an old file of this kind:
//! it says up to where pages were clean when it was written, and one that lags says nothing.
//! Never: guesses; says anything about pages that are newer in memory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenFile, OpenHow};

use crate::error::VersionsError;
use crate::stream::rsn::{PageNumber, Rsn};
use crate::stream::tag::Tag;

/// Pages that one block of the file is about, beginning with a multiple of that.
pub const VERSIONS_PAGES: usize = 511;

/// The version of blocks that this program writes.
const VERSION: u16 = 2;
/// The version of blocks that say nothing of how old their file is, which it reads as well.
const VERSION_AGELESS: u16 = 1;
const BLOCK_BYTES: usize = 4096;
const VERSION_AT: usize = 4;
const ENTRIES: usize = 8;

/// In the place of a page's last record: its image may lack some, since the archive has lost them.
pub(crate) const UNTOLD: Rsn = Rsn(u64::MAX);

const _: () = assert!(ENTRIES + 8 * VERSIONS_PAGES == BLOCK_BYTES);

/// The last record of each page of one block, as the page file has it; [`Rsn::NONE`] for a page
/// that was never written, and the greatest number for one of which nobody knows. In the place of
/// page 0, which there is not, stands up to where all pages were clean when the file was written.
pub type VersionsBlock = [Rsn; VERSIONS_PAGES];

/// The open file. All calls may come from any thread; a block is read and written by one at a time,
/// which is up to the caller.
pub struct Versions {
    path: PathBuf,
    file: Mutex<Arc<dyn OpenFile>>,
    tag: Tag,
    /// Whether the file is an old one, whose blocks say nothing.
    is_old: AtomicBool,
}

impl Versions {
    /// Opens the file at `path`, and makes it if it is missing; its name is durable after the next
    /// `sync_dir` of the caller.
    ///
    /// # Errors
    /// What the file system says; nothing changed.
    pub fn open(files: &dyn Files, path: &Path, tag: Tag) -> io::Result<Versions> {
        let (file, is_old) = (Mutex::new(open(files, path)?), AtomicBool::new(false));
        Ok(Versions { path: path.to_owned(), file, tag, is_old })
    }

    /// Believes the file only if it says that it was written when all pages were clean up to here,
    /// or later.
    pub(crate) fn distrust_before(&self, cleaned: Rsn) {
        let mut block = [Rsn::NONE; VERSIONS_PAGES];
        let written = match self.read(0, &mut block) {
            Ok(()) => block[0],
            Err(VersionsError::Unknown | VersionsError::Io(_)) => Rsn::NONE,
            // Whoever asks for a page is told.
            Err(VersionsError::OtherVersion { .. }) => return,
        };
        let is_old = written < cleaned && cleaned > Rsn::FIRST;
        self.is_old.store(is_old, Ordering::Relaxed);
    }

    /// Takes away what an old file says, durably, if this is one.
    pub(crate) fn renew(&self) -> io::Result<()> {
        if self.is_old.load(Ordering::Relaxed) {
            let file = self.file();
            file.set_len(0)?;
            file.sync_data()?;
            self.is_old.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Opens the file that has its name now, in the place of the one that is open, and makes it if
    /// it is missing. What was written since the last sync counts for nothing then.
    ///
    /// # Errors
    /// What the file system says; nothing changed.
    pub fn reopen(&self, files: &dyn Files) -> io::Result<()> {
        let file = open(files, &self.path)?;
        *self.file.lock().expect("nothing panics with the open file") = file;
        Ok(())
    }

    /// The block that is about a page, and the page's place in it.
    #[must_use]
    pub fn place(page: PageNumber) -> (u64, usize) {
        let pages = VERSIONS_PAGES as u64;
        (page.get() / pages, (page.get() % pages) as usize)
    }

    /// Reads a block.
    ///
    /// # Errors
    /// See [`VersionsError`]; `into` may hold anything then.
    pub fn read(&self, block: u64, into: &mut VersionsBlock) -> Result<(), VersionsError> {
        if self.is_old.load(Ordering::Relaxed) {
            return Err(VersionsError::Unknown);
        }
        let mut bytes = [0; BLOCK_BYTES];
        let found =
            self.file().read_full_at(&mut bytes, offset(block)).map_err(VersionsError::Io)?;
        if found < BLOCK_BYTES || u32_at(&bytes, 0) != self.check_of(block, &bytes) {
            return Err(VersionsError::Unknown);
        }
        match u16::from_le_bytes([bytes[VERSION_AT], bytes[VERSION_AT + 1]]) {
            VERSION | VERSION_AGELESS => {}
            found => return Err(VersionsError::OtherVersion { found, known: VERSION }),
        }
        for (rsn, entry) in into.iter_mut().zip(bytes[ENTRIES..].as_chunks().0) {
            *rsn = Rsn(u64::from_le_bytes(*entry));
        }
        Ok(())
    }

    /// Writes a block; it is durable after [`Versions::sync`].
    ///
    /// # Errors
    /// What the file system says. The block may be unknown now; write it again.
    pub fn write(&self, block: u64, versions: &VersionsBlock) -> io::Result<()> {
        let mut bytes = [0; BLOCK_BYTES];
        bytes[VERSION_AT..VERSION_AT + 2].copy_from_slice(&VERSION.to_le_bytes());
        for (rsn, entry) in versions.iter().zip(bytes[ENTRIES..].as_chunks_mut().0) {
            *entry = rsn.get().to_le_bytes();
        }
        let check = self.check_of(block, &bytes);
        bytes[..VERSION_AT].copy_from_slice(&check.to_le_bytes());
        self.file().write_all_at(&bytes, offset(block))
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// What the file system says. Nothing that was written since the last sync counts: reopen the
    /// file and write all of it again.
    pub fn sync(&self) -> io::Result<()> {
        self.file().sync_data()
    }

    fn file(&self) -> Arc<dyn OpenFile> {
        Arc::clone(&self.file.lock().expect("nothing panics with the open file"))
    }

    fn check_of(&self, block: u64, bytes: &[u8; BLOCK_BYTES]) -> u32 {
        crc32c(crc32c(self.tag.get(), &block.to_le_bytes()), &bytes[VERSION_AT..])
    }
}

impl std::fmt::Debug for Versions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Versions").field("tag", &self.tag).finish_non_exhaustive()
    }
}

fn open(files: &dyn Files, path: &Path) -> io::Result<Arc<dyn OpenFile>> {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    files.open(path, how)
}

fn offset(block: u64) -> u64 {
    block * BLOCK_BYTES as u64
}

fn u32_at(bytes: &[u8; BLOCK_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a slice is as long as it was cut"))
}

#[cfg(test)]
mod tests;
