//! Files of which one has its blocks cached.
//!
//! Promise: reads of that file give what reads of the home would give, from the cache where it can;
//! its users need not know that there is one.
//! Never: caches what is not wholly inside the file, or a file that another name may lead to.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_io::{
    Allocation, Change, DirEntry, Files, Held, InodeNumbers, Kind, Limits, Metadata, OpenFile,
    OpenHow, Space,
};

use crate::block_cache::BlockCache;
use crate::cache::Home;
use crate::cached_file::CachedFile;

/// Files below one root, of which one goes through a cache. All users of that file have to go
/// through the same value of this.
///
/// The file keeps its name while it is here: to rename it, remove it, exchange it or give it a
/// second name is refused as [`io::ErrorKind::Unsupported`].
pub struct CachedFiles {
    files: Arc<dyn Files>,
    path: PathBuf,
    cache: Arc<BlockCache>,
    pledge: u64,
}

impl CachedFiles {
    /// Puts a cache before the file at `path`, which exists. It is warm if it was used with this
    /// file last, and its user died and had the same pledge, or [`CachedFiles::close`] left the
    /// file as it is.
    ///
    /// The pledge is a number that the owner of the file keeps as long as the file is used through
    /// this cache alone, whoever dies meanwhile. Before the file is used without it, he forgets the
    /// number; for the next use he takes one that no use ever had. So a cache that was left out for
    /// a while does not take itself for right.
    ///
    /// # Errors
    /// What the description of the file failed with.
    pub fn new(
        files: Arc<dyn Files>,
        path: impl Into<PathBuf>,
        cache: Arc<BlockCache>,
        pledge: u64,
    ) -> io::Result<CachedFiles> {
        let path = path.into();
        cache.blocks().begin(&Home::of(&files.metadata(&path)?, pledge));
        Ok(CachedFiles { files, path, cache, pledge })
    }

    /// Says that nobody uses the files any more, and others may change the home. The cache is warm
    /// for who finds the home unchanged; of a device nobody can tell.
    ///
    /// # Errors
    /// What the description of the file failed with.
    pub fn close(&self) -> io::Result<()> {
        let home = Home::of(&self.files.metadata(&self.path)?, self.pledge);
        self.cache.blocks().end(&home);
        Ok(())
    }

    /// Refuses what would give the file another name, or its name to another file.
    fn keep(&self, path: &Path) -> io::Result<()> {
        if path == self.path {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a cached file keeps its name"));
        }
        Ok(())
    }
}

impl Files for CachedFiles {
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn OpenFile>> {
        let file = self.files.open(path, how)?;
        if path != self.path {
            return Ok(file);
        }
        Ok(Arc::new(CachedFile::new(file, Arc::clone(&self.cache))))
    }

    fn hold(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        let held = self.files.hold(path)?;
        if path != self.path {
            return Ok(held);
        }
        Ok(Box::new(CachedHeld { held, cache: Arc::clone(&self.cache) }))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.files.metadata(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.files.read_dir(path)
    }

    fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read_link(path)
    }

    fn make(&self, path: &Path, kind: Kind, mode: u32, rdev: u64) -> io::Result<Box<dyn Held>> {
        self.files.make(path, kind, mode, rdev)
    }

    fn make_symlink(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        self.files.make_symlink(path, target)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.keep(from)?;
        self.files.link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.keep(from)?;
        self.keep(to)?;
        self.files.rename(from, to)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.keep(one)?;
        self.keep(other)?;
        self.files.exchange(one, other)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.keep(path)?;
        self.files.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.files.remove_dir(path)
    }

    fn change(&self, path: &Path, change: &Change) -> io::Result<()> {
        self.files.change(path, change)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.files.sync_dir(path)
    }

    fn space(&self) -> io::Result<Space> {
        self.files.space()
    }

    fn limits(&self) -> io::Result<Limits> {
        self.files.limits()
    }

    fn allocation(&self) -> io::Result<Allocation> {
        self.files.allocation()
    }

    fn writes_in_place(&self) -> bool {
        self.files.writes_in_place()
    }

    fn inode_numbers(&self) -> InodeNumbers {
        self.files.inode_numbers()
    }
}

/// The file behind the cache.
struct CachedHeld {
    held: Box<dyn Held>,
    cache: Arc<BlockCache>,
}

impl Held for CachedHeld {
    fn metadata(&self) -> io::Result<Metadata> {
        self.held.metadata()
    }

    fn open(&self, write: bool) -> io::Result<Arc<dyn OpenFile>> {
        Ok(Arc::new(CachedFile::new(self.held.open(write)?, Arc::clone(&self.cache))))
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        self.held.change(change)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.held.sync_dir()
    }
}
