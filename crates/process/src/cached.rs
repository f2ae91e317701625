//! The home of a volume as the volume uses it: through its block cache, if it has one.
//!
//! Promise: a cache that is believed has heard of every change that this volume made to its home;
//! one that was left out, or cannot be read, begins empty. What is no cache of this volume is left
//! as it is, and named.
//! Never: keeps a home from being given back.

use crate::parts::Parts;
use holdfast_attach::home::Home;
use holdfast_attach::logs::once_let_go;
use holdfast_attach::observe::region_problem;
use holdfast_blocks::{AttachCacheError, BlockCache, CacheSpec, CachedFiles};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{MemoryConfig, VolumeConfig};
use holdfast_io::real::RealEntropy;
use holdfast_io::{Entropy, Files, OneFile};
use holdfast_memory::{AttachError, CreateError, Medium, Region};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A home, and the cache before it.
pub(super) struct HomeInUse {
    files: Arc<dyn Files>,
    cache: Option<Arc<CachedFiles>>,
    /// What the log's memory has to say while the home is used like this, and says before it is.
    pub(super) pledge: u64,
}

impl HomeInUse {
    /// For the volume, which is the only one to change the home.
    pub(super) fn files(&self) -> Arc<dyn Files> {
        self.files.clone()
    }

    /// The volume has changed the home for the last time.
    pub(super) fn close(&self) {
        // One that is not closed has lost the pledge, and begins empty.
        let _ = self.cache.as_ref().map(|cache| cache.close());
    }
}

impl Parts {
    /// Puts the cache of a volume before its home. `identity` is that of the log, `pledge` what the
    /// log's memory says.
    pub(super) fn home_in_use(&self, identity: [u8; 16], pledge: u64) -> Outcome<HomeInUse> {
        let Some(memory) = &self.volume.block_cache else {
            return Ok(HomeInUse { files: self.home.files(), cache: None, pledge: 0 });
        };
        check_home(&self.name, &self.volume, &self.home)?;
        let cache = Arc::new(self.block_cache(memory, identity)?);
        let pledge = if pledge == 0 { new_pledge() } else { pledge };
        let (files, of_home) = (self.home.files(), pledge_of(pledge, &self.home));
        let cached = CachedFiles::new(files, OneFile::NAME, cache, of_home).map_err(|error| {
            let remedy = "see whether the home can be reached";
            Problem::new(Exit::Failed, self.what("looking at the home of"), error, remedy)
        })?;
        let cached = Arc::new(cached);
        Ok(HomeInUse { files: cached.clone(), cache: Some(cached), pledge })
    }

    /// The cache as it was left, or a new one.
    fn block_cache(&self, memory: &MemoryConfig, identity: [u8; 16]) -> Outcome<BlockCache> {
        let medium = memory.medium();
        let found = once_let_go(&medium, || BlockCache::attach(&medium, identity), holder);
        match found {
            Ok(cache) if cache.bytes() == memory.size.0 => return Ok(cache),
            Ok(of_other_size) => {
                drop(of_other_size);
                self.remove_cache(&medium);
            }
            Err(AttachCacheError::Region(AttachError::Missing)) => {}
            Err(error) if is_worn_out(&error) => self.remove_cache(&medium),
            Err(error) => return Err(refusal(&self.name, &medium, &error)),
        }
        let spec = CacheSpec { bytes: memory.size.0, identity };
        BlockCache::create(&medium, &spec).map_err(|error| {
            let exit = match error {
                CreateError::Io { .. } => Exit::Failed,
                _ => Exit::Usage,
            };
            let what = self.what("making the block cache of");
            let remedy = "make room for it, or correct block_cache, or leave it out";
            Problem::new(exit, what, error, remedy)
        })
    }

    /// Lets the memory of a cache go that nobody could find warm.
    pub(super) fn remove_useless_cache(&self) {
        if let Some(memory) = self.volume.block_cache.as_ref().filter(|_| self.home.is_device()) {
            self.remove_cache(&memory.medium());
        }
    }

    fn remove_cache(&self, medium: &Medium) {
        if let Err(error) = Region::remove(medium)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(volume = self.name, %error, "a block cache cannot be removed");
        }
    }
}

/// Sees to it that a volume which is about to be made can have the cache that it asks for.
pub fn prepare(name: &str, volume: &VolumeConfig, home: &Home) -> Outcome<()> {
    let Some(memory) = &volume.block_cache else { return Ok(()) };
    check_home(name, volume, home)?;
    let medium = memory.medium();
    let nobody = [0; 16];
    let found = once_let_go(&medium, || BlockCache::attach(&medium, nobody), holder);
    match found.map(drop) {
        Err(AttachCacheError::Region(AttachError::Missing)) => Ok(()),
        // Whose it was is gone: this volume's log is new.
        Err(AttachCacheError::OtherOwner { .. }) => remove_old(name, &medium),
        Err(error) if is_worn_out(&error) => remove_old(name, &medium),
        Err(error) => Err(refusal(name, &medium, &error)),
        Ok(()) => unreachable!("no log has an identity of zeros"),
    }
}

fn remove_old(name: &str, medium: &Medium) -> Outcome<()> {
    Region::remove(medium).map_err(|error| {
        let what = format!("removing an old block cache of volume {name}");
        Problem::new(Exit::Failed, what, error, "remove it by hand: nothing is lost with it")
    })
}

/// Only one file or device has blocks.
pub fn check_home(name: &str, volume: &VolumeConfig, home: &Home) -> Outcome<()> {
    match home.is_disk() {
        true => Ok(()),
        false => Err(Problem::new(
            Exit::Usage,
            format!("putting a block cache before the home of volume {name}"),
            format!("{} is a directory", volume.home.display()),
            "name a file or a block device as home, or leave block_cache out",
        )),
    }
}

/// Whether it is nothing but a cache, and of no use any more.
fn is_worn_out(error: &AttachCacheError) -> bool {
    matches!(
        error,
        AttachCacheError::Region(AttachError::OtherBoot)
            | AttachCacheError::OtherVersion { .. }
            | AttachCacheError::Damaged
    )
}

fn holder(error: &AttachCacheError) -> Option<u32> {
    match error {
        AttachCacheError::Region(AttachError::InUse { pid }) => Some(*pid),
        _ => None,
    }
}

fn refusal(name: &str, medium: &Medium, error: &AttachCacheError) -> Problem {
    if let AttachCacheError::Region(error @ AttachError::InUse { .. }) = error {
        let of_region = region_problem("", ("", medium), error);
        let remedy = format!("{}, or correct block_cache.path", of_region.remedy);
        return Problem { what: taking(name, medium), remedy, ..of_region };
    }
    let place = medium.path().unwrap_or(Path::new("private memory")).display();
    let (exit, remedy) = match error {
        AttachCacheError::NoCache { .. } => {
            (Exit::Usage, "correct block_cache.path; nothing was changed".to_owned())
        }
        _ => (
            Exit::Usage,
            format!("correct block_cache, or remove {place}: nothing is lost with a cache"),
        ),
    };
    Problem::new(exit, taking(name, medium), error, remedy)
}

fn taking(name: &str, medium: &Medium) -> String {
    let place = medium.path().unwrap_or(Path::new("private memory")).display();
    format!("taking {place} for the block cache of volume {name}")
}

/// A pledge that no cache has.
fn new_pledge() -> u64 {
    let mut bytes = [0; 8];
    RealEntropy.fill(&mut bytes);
    u64::from_le_bytes(bytes).max(1)
}

/// The pledge for one home: another one that takes its place does not keep it.
fn pledge_of(pledge: u64, home: &Home) -> u64 {
    let mut hasher = DefaultHasher::new();
    (pledge, home.number()).hash(&mut hasher);
    hasher.finish()
}
