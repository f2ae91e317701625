//! The cache in durable memory, as its users see it.
//!
//! Promise: it is made, attached after any death, and looked at from outside; what is no cache of
//! this owner and version is told apart and left as it is.
//! Never: needed: whoever loses one makes another, and reads the home.

use holdfast_io::checksum::crc32c;
use holdfast_memory::{Area, AreaSpec, AttachError, CreateError, Medium, MediumSurvival, Region};

use crate::cache::{self, Cache, CacheLayout};
use crate::error::AttachCacheError;
use crate::header::{BLOCK_BYTES, HeaderFault};
use crate::memory::HELD;

/// What a region that holds a cache says that it holds.
const CONTENT: [u8; 8] = *b"HFCACHE\0";

/// What a new cache is to be.
#[derive(Clone, Copy, Debug)]
pub struct CacheSpec {
    /// Bytes of blocks to hold, rounded down to a multiple of 65536, and up to that at least. The
    /// region has 0.4 % more.
    pub bytes: u64,
    /// Whose cache it is: the identity of the log of the volume that it serves, or of whatever else
    /// has one home.
    pub identity: [u8; 16],
}

/// Blocks of one home, kept in durable memory: warm when the next process takes it up.
///
/// What a cache may hold is decided by who reads and writes through it, see
/// [`crate::CachedFiles`]. Dropping it ends the claim on the region; the blocks stay.
#[derive(Debug)]
pub struct BlockCache {
    cache: Cache<Area>,
}

/// What a cache counts, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Bytes of blocks held.
    pub held_bytes: u64,
    /// Blocks that were looked for and found, since the cache was made.
    pub hits: u64,
    /// Blocks that were not.
    pub misses: u64,
    /// Of those that were not, such as were damaged.
    pub damaged: u64,
}

impl BlockCache {
    /// Makes an empty cache on `medium`. All its memory is allocated here.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create(medium: &Medium, spec: &CacheSpec) -> Result<BlockCache, CreateError> {
        let bucket_bytes = u64::from(cache::WAYS) * BLOCK_BYTES as u64;
        let buckets = (spec.bytes / bucket_bytes).max(1);
        if buckets > cache::BUCKETS_MAX {
            return Err(CreateError::BadSpec("a cache has less than 16 TiB"));
        }
        let (layout, identity) = (CacheLayout { buckets: buckets as u32 }, spec.identity);
        let seed = crc32c(0, &identity);
        let spec = AreaSpec { content: CONTENT, identity, bytes: layout.area_bytes() };
        let area = Area::create(medium, &spec, |area| layout.format(area, seed))?;
        Ok(BlockCache::over(area, layout, seed))
    }

    /// Takes up the cache of this owner on `medium` after its last user ended or died.
    ///
    /// # Errors
    /// See [`AttachCacheError`]. Whoever gets one may remove the region and make another cache.
    pub fn attach(medium: &Medium, identity: [u8; 16]) -> Result<BlockCache, AttachCacheError> {
        let area = Area::attach(medium, CONTENT).map_err(|error| match error {
            AttachError::OtherContent { found } => AttachCacheError::NoCache { found },
            other => AttachCacheError::Region(other),
        })?;
        if area.identity() != identity {
            return Err(AttachCacheError::OtherOwner { found: area.identity() });
        }
        let seed = crc32c(0, &identity);
        let layout =
            CacheLayout::found(&area, seed, area.bytes()).map_err(|fault| match fault {
                HeaderFault::OtherVersion { found } => {
                    AttachCacheError::OtherVersion { found, known: cache::VERSION }
                }
                HeaderFault::Damaged => AttachCacheError::Damaged,
            })?;
        Ok(BlockCache::over(area, layout, seed))
    }

    /// Looks at the cache on `medium`, whoever uses it meanwhile.
    ///
    /// # Errors
    /// [`AttachCacheError::Region`], or [`AttachCacheError::NoCache`].
    pub fn observe(medium: &Medium) -> Result<CacheCounts, AttachCacheError> {
        let seen = Region::observe(medium).map_err(AttachCacheError::Region)?;
        if seen.content() != CONTENT {
            return Err(AttachCacheError::NoCache { found: seen.content() });
        }
        Ok(CacheCounts {
            held_bytes: seen.word(HELD) * BLOCK_BYTES as u64,
            hits: seen.word(cache::HITS),
            misses: seen.word(cache::MISSES),
            damaged: seen.word(cache::DAMAGED),
        })
    }

    /// Bytes of blocks that there is room for.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.cache.blocks_max() * BLOCK_BYTES as u64
    }

    /// Which deaths the cache is warm after, as found, not as configured.
    #[must_use]
    pub fn survives(&self) -> MediumSurvival {
        self.cache.memory().survives()
    }

    pub(crate) fn blocks(&self) -> &Cache<Area> {
        &self.cache
    }

    fn over(area: Area, layout: CacheLayout, seed: u32) -> BlockCache {
        let outlives_system = area.survives().os;
        BlockCache { cache: Cache::open(area, layout, seed, outlives_system) }
    }
}
