//! Memory that a fork empties.
//!
//! Promise: a word of it is zero in every process but the one that wrote it.
//! Never: goes away.

use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;

use rustix::io::Result;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// As little as can be mapped.
const PAGE_BYTES: usize = 4096;

/// A new word of such memory: zero.
pub(super) fn emptied_word() -> Result<&'static AtomicU64> {
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses an address where nothing is mapped.
    let page = unsafe { mmap_anonymous(null_mut(), PAGE_BYTES, prot, MapFlags::PRIVATE)? };
    // SAFETY: the range was just mapped, and the advice changes nothing of it in this process. What
    // a child finds, zeros, is a valid word too.
    unsafe { madvise(page, PAGE_BYTES, Advice::LinuxWipeOnFork)? };
    // SAFETY: the page is mapped for as long as there is this process, is aligned for a word, holds
    // zeros, and is known to nobody else.
    Ok(unsafe { &*page.cast::<AtomicU64>() })
}
