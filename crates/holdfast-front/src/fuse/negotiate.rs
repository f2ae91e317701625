//! What is agreed on when a mount starts.
//!
//! Promise: accepts only what the kernel offers, and only what the rest of this front end handles.
//! Never: remembers. A process that starts later, without an INIT of its own, behaves the same.
//!
//! Left out on purpose: the writeback cache (an acknowledged write would sit in the page cache
//! while its `fsync` is skipped), locks (the kernel keeps them itself, and they outlive a front
//! end), exporting over NFS (nodes would have to be found again by number), ACLs.

#[cfg(test)]
mod tests;

use super::parse::Init;
use super::reply::Started;
use super::wire::{self, init};

const MAJOR: u32 = 7;
/// Newest minor version whose structures are spoken here.
const MINOR: u32 = 40;
/// Oldest one with transfers of a mebibyte; structures have the shape parsed here from 7.12 on.
const MINOR_MIN: u32 = 28;
const MAX_BACKGROUND: u16 = 64;

const WANTED: u64 = init::ASYNC_READ
    | init::ATOMIC_O_TRUNC
    | init::BIG_WRITES
    | init::DO_READDIRPLUS
    | init::READDIRPLUS_AUTO
    | init::ASYNC_DIO
    | init::PARALLEL_DIROPS
    | init::MAX_PAGES
    | init::CACHE_SYMLINKS
    | init::HANDLE_KILLPRIV_V2
    | init::INIT_EXT
    | init::DIRECT_IO_ALLOW_MMAP
    | init::HAS_RESEND;

/// The answer to the kernel's offer; `Err` is an error number for a kernel too old or too new.
pub(crate) fn negotiate(offer: &Init) -> Result<Started, i32> {
    if offer.major != MAJOR || offer.minor < MINOR_MIN {
        return Err(wire::EPROTO);
    }
    Ok(Started {
        minor: offer.minor.min(MINOR),
        max_readahead_bytes: offer.max_readahead_bytes,
        features: offer.features & WANTED,
        max_background: MAX_BACKGROUND,
        max_write_bytes: wire::TRANSFER_BYTES_MAX as u32,
        max_pages: wire::TRANSFER_PAGES_MAX,
    })
}
