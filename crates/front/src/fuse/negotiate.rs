//! What is agreed on when a mount starts.
//!
//! Promise: accepts only what the kernel offers, and only what the rest of this front end handles.
//! Never: remembers. A process that starts later, without an INIT of its own, behaves the same, but
//! for what it does not know that it may leave out.
//!
//! Left out on purpose: the writeback cache (an acknowledged write would sit in the page cache
//! while its `fsync` is skipped), locks (the kernel keeps them itself, and they outlive a front
//! end), exporting over NFS (nodes would have to be found again by number).

#[cfg(test)]
mod tests;

use super::cache::Cache;
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
    | init::BIG_WRITES
    | init::DO_READDIRPLUS
    | init::READDIRPLUS_AUTO
    | init::ASYNC_DIO
    | init::PARALLEL_DIROPS
    | init::MAX_PAGES
    | init::CACHE_SYMLINKS
    | init::HANDLE_KILLPRIV_V2
    | init::INIT_EXT
    | init::HAS_RESEND;

/// What the kernel must do for access control lists to mean what they say; all of it or nothing.
/// The longer form of SETXATTR, which is the last of them, tells a process that saw no INIT which
/// of the two it is.
const LISTS: u64 = init::POSIX_ACL | init::DONT_MASK | init::SETXATTR_EXT;

/// How the kernel says that it can do without being told of opens.
const NO_OPENS: u64 = init::NO_OPEN_SUPPORT | init::NO_OPENDIR_SUPPORT;

/// True if the kernel that offers this may be told that opens are nobody's business here: an open
/// then costs no request, and neither does a close.
pub(crate) fn can_do_without_opens(offer: &Init, cache: Cache) -> bool {
    cache == Cache::WriteThrough && offer.features & NO_OPENS == NO_OPENS
}

/// The answer to the kernel's offer; `Err` is an error number for a kernel too old or too new.
/// Where `opens` are told, one may truncate; where they are not, that is a request of its own.
pub(crate) fn negotiate(offer: &Init, cache: Cache, opens: bool) -> Result<Started, i32> {
    if offer.major != MAJOR || offer.minor < MINOR_MIN {
        return Err(wire::EPROTO);
    }
    let lists = if offer.features & LISTS == LISTS { LISTS } else { 0 };
    let opening = if opens { init::ATOMIC_O_TRUNC } else { 0 };
    // Nobody but the kernel changes a file, so it knows itself which pages are still right.
    let caching = if cache == Cache::WriteThrough { init::EXPLICIT_INVAL_DATA } else { 0 };
    let mapping = if cache == Cache::Nowhere { 0 } else { init::DIRECT_IO_ALLOW_MMAP };
    Ok(Started {
        minor: offer.minor.min(MINOR),
        max_readahead_bytes: offer.max_readahead_bytes,
        features: offer.features & (WANTED | opening | caching | mapping) | lists,
        max_background: MAX_BACKGROUND,
        max_write_bytes: wire::TRANSFER_BYTES_MAX as u32,
        max_pages: wire::TRANSFER_PAGES_MAX,
    })
}
