//! Which run of the operating system this is.
//!
//! Promise: two runs have different numbers, and no run has zeros.
//! Never: counts: which of two runs came first is not in their numbers.

use std::io;
use std::path::Path;

use crate::medium::Medium;

/// Where the kernel says it.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What is being done when that cannot be read.
pub(crate) const READ_BOOT_ID: &str = "read the system's boot id";

/// The number of this run of the operating system, drawn when it started.
///
/// # Errors
/// If there is no proc file system, or it has no such number.
pub fn boot_id() -> io::Result<[u64; 2]> {
    let text = std::fs::read_to_string(Path::new(BOOT_ID))?;
    let digits: String = text.trim().chars().filter(|letter| *letter != '-').collect();
    let id = u128::from_str_radix(&digits, 16).map_err(io::Error::other)?;
    Ok([(id >> 64) as u64, id as u64])
}

/// This run of the system, where bytes of an earlier one may be found; zeros elsewhere. What a
/// configuration calls a path says nothing of the file system that it leads to.
pub(crate) fn boot_of(medium: &Medium) -> io::Result<[u64; 2]> {
    match medium {
        Medium::Private => Ok([0; 2]),
        Medium::Shm { .. } | Medium::HugeTlb { .. } | Medium::Pmem { .. } | Medium::File { .. } => {
            boot_id()
        }
    }
}
