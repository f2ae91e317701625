//! Blocks kept in durable memory: a disk, and a cache of a slower one.
//!
//! Promise: all that a disk or a cache knows is in its region. Whoever dies while using it, and
//! wherever, the next one goes on: a block of a [`Vdisk`] is wholly the old or wholly the new one,
//! and one that a [`BlockCache`] has is what its home has.
//! Never: knows logs, volumes or protocols. It starts no thread.
//!
//! From outside in: [`Vdisk`] is a [`holdfast_io::Blocks`] in an area of durable memory. `disk` is
//! its logic, over any `memory`; `layout` says where things lie, `map` which cell has which block,
//! `intent` what a write of several blocks is about to do, `spares` which cells are free, and
//! `gates` keep writers apart and tell readers. [`CachedFiles`] put a [`BlockCache`] before one
//! file of any [`holdfast_io::Files`]: `cached_file` reads and writes through it, `cache` is its
//! logic. There is no unsafe code here.

// The models in tests/ include the modules they check by path.
#![cfg(not(model))]

mod area;
mod block_cache;
mod cache;
mod cached_file;
mod cached_files;
mod disk;
mod error;
mod extent;
mod gates;
mod header;
mod intent;
mod layout;
mod lend;
mod map;
mod memory;
mod orderings;
mod parts;
mod receive;
mod spares;
mod sync;
#[cfg(test)]
mod tests;
mod vdisk;

pub use block_cache::{BlockCache, CacheCounts, CacheSpec};
pub use cached_files::CachedFiles;
pub use disk::DiskFault;
pub use error::{AttachCacheError, AttachVdiskError, CreateVdiskError};
pub use vdisk::{Vdisk, VdiskSpec};

/// The byte tables of disks and caches, as FORMAT.md in this crate prints them and a test compares
/// them.
pub const FORMAT: &str = include_str!("../FORMAT.md");
