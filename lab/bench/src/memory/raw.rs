//! Shared memory as a slice: the least that bytes can be copied to and from.
//!
//! Promise: it stays mapped for as long as the program runs.
//! Never: is mapped twice.

use std::fs::File;
use std::io;
use std::ptr::null_mut;

use rustix::mm::{MapFlags, ProtFlags, mmap};

/// Maps all of a new file, which nobody else has or gets.
pub(crate) fn bytes(file: File, bytes: usize) -> io::Result<&'static mut [u8]> {
    file.set_len(bytes as u64)?;
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses an address where nothing is mapped.
    let base = unsafe { mmap(null_mut(), bytes, prot, MapFlags::SHARED, &file, 0)? };
    // SAFETY: as long as the file, never unmapped, and nobody else maps the file.
    Ok(unsafe { std::slice::from_raw_parts_mut(base.cast(), bytes) })
}
