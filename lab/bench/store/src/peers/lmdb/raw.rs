//! LMDB's file as memory.
//!
//! Promise: the folder belongs to this run, so nobody else changes the file below the map.
//! Never: opens a folder twice at a time.

use std::path::Path;

use heed::{Env, EnvFlags, EnvOpenOptions};

use crate::Failure;
use crate::peers::Durability;

/// More than any run writes; the file is no larger than what was written.
const MAP_BYTES: usize = 16 << 30;

/// Tables at most.
const TABLES: u32 = 4;

/// Opens it.
pub(super) fn open(folder: &Path, durability: Durability) -> Result<Env, Failure> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_dbs(TABLES);
    if durability == Durability::Kernel {
        // SAFETY: without syncs a power cut leaves a file that cannot be read; none is read after
        // one, as each run begins with a new folder.
        unsafe { options.flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP) };
    }
    // SAFETY: the folder is this run's own, and each store is closed before its folder is opened
    // again, so nobody changes the file below the map.
    Ok(unsafe { options.open(folder)? })
}
