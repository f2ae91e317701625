//! What status prints of a volume's block cache.
//!
//! Promise: what the cache counted, whoever uses it or nobody; a cache that is not there holds
//! nothing.
//! Never: waits for a front end.

use holdfast_blocks::BlockCache;
use holdfast_config::MemoryConfig;
use holdfast_config::sizes::rounded;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The block cache of a volume.
#[derive(Debug, Serialize, Deserialize)]
pub struct BlockCacheStatus {
    /// Where it is.
    pub path: Option<PathBuf>,
    /// What it is made of.
    pub medium: String,
    /// Bytes of blocks that it has room for.
    pub size_bytes: u64,
    /// Bytes of blocks that it holds; all of them are at home too.
    pub held_bytes: u64,
    /// Blocks looked for and found, since the cache was made.
    pub hits: u64,
    /// Blocks looked for and read from the home.
    pub misses: u64,
    /// Of those, such as were damaged.
    pub damaged: u64,
    /// Hits among all blocks that were looked for; missing before the first.
    pub hit_ratio: Option<f64>,
}

impl BlockCacheStatus {
    pub(super) fn of(cache: &MemoryConfig) -> BlockCacheStatus {
        let counts = BlockCache::observe(&cache.medium()).unwrap_or_default();
        let (hits, misses) = (counts.hits, counts.misses);
        let looked_for = hits + misses;
        BlockCacheStatus {
            path: cache.path.clone(),
            medium: cache.medium.word().into(),
            size_bytes: cache.size.0,
            held_bytes: counts.held_bytes,
            hits,
            misses,
            damaged: counts.damaged,
            hit_ratio: (looked_for > 0).then(|| hits as f64 / looked_for as f64),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let found = match self.hit_ratio {
            None => "nothing was looked for yet".to_owned(),
            Some(ratio) => {
                let blocks = self.hits + self.misses;
                format!("{:.1} % of {blocks} blocks were found", 100.0 * ratio)
            }
        };
        format!("{} of at most {}; {found}", rounded(self.held_bytes), rounded(self.size_bytes))
    }
}
