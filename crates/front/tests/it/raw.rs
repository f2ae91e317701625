//! Mapped files and aligned memory for tests.

use std::fs::File;
use std::ops::{Deref, DerefMut};

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

/// A mapped file.
pub(crate) struct Mapped {
    start: *mut std::ffi::c_void,
    bytes: usize,
}

impl Mapped {
    pub(crate) fn shared(file: &File, bytes: usize) -> Self {
        Self::new(file, bytes, MapFlags::SHARED)
    }

    pub(crate) fn private(file: &File, bytes: usize) -> Self {
        Self::new(file, bytes, MapFlags::PRIVATE)
    }

    fn new(file: &File, bytes: usize, flags: MapFlags) -> Self {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, file, 0) };
        Self { start: start.unwrap(), bytes }
    }

    pub(crate) fn sync(&self) {
        // SAFETY: the range is this value's mapping.
        unsafe { msync(self.start, self.bytes, MsyncFlags::SYNC) }.unwrap();
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is this value's; the tests write the file only between two reads.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes) }
    }
}

impl DerefMut for Mapped {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.bytes) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no slice of it outlives the value.
        unsafe { munmap(self.start, self.bytes) }.unwrap();
    }
}

/// 4096 bytes on a page of their own.
#[repr(align(4096))]
pub(crate) struct AlignedBlock([u8; 4096]);

impl AlignedBlock {
    pub(crate) fn filled_with(byte: u8) -> Self {
        Self([byte; 4096])
    }
}

impl Deref for AlignedBlock {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
