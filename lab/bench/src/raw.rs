//! Two words shared by two processes, each on a line of its own: the least that can carry a request
//! and its answer.
//!
//! Promise: both are mapped for as long as the program runs.
//! Never: knows how they are waited for.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags, mmap};

/// A word that shares its pair of cache lines with none.
#[repr(C, align(128))]
pub(crate) struct Line(pub(crate) AtomicU32);

/// The words.
#[repr(C)]
pub(crate) struct Words {
    /// Number of the newest request.
    pub(crate) request: Line,
    /// Number of the newest answer.
    pub(crate) answer: Line,
}

/// Bytes of the file that holds the words.
pub(crate) const BYTES: usize = 4096;

/// Maps the words of a file of [`BYTES`] bytes. They stay mapped.
pub(crate) fn words(file: BorrowedFd<'_>) -> io::Result<&'static Words> {
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses an address where nothing is mapped.
    let base = unsafe { mmap(null_mut(), BYTES, prot, MapFlags::SHARED, file, 0)? };
    // SAFETY: page aligned, larger than the struct, never unmapped; any bits are valid atomics.
    Ok(unsafe { &*base.cast::<Words>() })
}
