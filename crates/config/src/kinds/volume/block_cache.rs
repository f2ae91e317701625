//! `block_cache = { ... }` of a volume: blocks of its home, kept in memory.
//!
//! Promise: what is accepted is memory that a dead front end leaves to the next one, beside a log's
//! memory that does so too: without that nobody would know whether the blocks are still right.
//! Never: knows whether the home is one that has blocks; only opening it tells.

use crate::claims::MediumKind;
use crate::kinds::volume::VolumeConfig;
use crate::regions::region_of;
use crate::sizes::Size;

/// A unit that is a whole number of buckets, and of every file system's blocks.
const SIZE_UNIT_BYTES: u64 = 1 << 20;
const SIZE_BYTES_MAX: u64 = 8 << 40;

impl VolumeConfig {
    /// Fills in where the cache is, and checks it.
    pub(crate) fn complete_block_cache(&mut self, name: &str) -> Result<(), String> {
        let Some(cache) = &mut self.block_cache else { return Ok(()) };
        if cache.medium == MediumKind::Private {
            return Err(
                "block_cache.medium = \"private\" is gone with the front end; use \"shm\", \
                        or leave block_cache out"
                    .into(),
            );
        }
        if self.memory.medium == MediumKind::Private {
            return Err("block_cache needs to know who used the home last, which memory.medium = \
                        \"private\" forgets; use \"shm\", or leave block_cache out"
                .into());
        }
        if cache.medium == MediumKind::Shm && cache.path.is_none() {
            cache.path = Some(region_of(&format!("cache-{name}")));
        }
        check_size(cache.size)?;
        cache.check_place("block_cache.path")
    }
}

fn check_size(size: Size) -> Result<(), String> {
    let (min, max) = (SIZE_UNIT_BYTES, SIZE_BYTES_MAX);
    match size.0.is_multiple_of(min) && (min..=max).contains(&size.0) {
        true => Ok(()),
        false => Err(format!(
            "block_cache.size = \"{size}\" is not a multiple of {} up to {}",
            Size(min),
            Size(max)
        )),
    }
}
