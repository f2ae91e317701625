//! Memory that another process may write at any time.
//!
//! Promise: no access leaves the mapping; none is a Rust access that a stranger's store could race:
//! words are atomics, and bytes are copied by one instruction that the compiler does not look into.
//! Never: hands out a reference to bytes.

use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munlock, munmap};

use crate::queue::Page;
use crate::raw::copy;

/// A mapping that begins with a queue page.
#[derive(Debug)]
pub(crate) struct SharedBytes {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread; it is unmapped once, by Drop. What is reached through
// it is atomic or copied as the head of this file says.
unsafe impl Send for SharedBytes {}
// SAFETY: as above; no method changes the struct itself.
unsafe impl Sync for SharedBytes {}

impl SharedBytes {
    /// Maps a file whose size is at least `bytes` and cannot change.
    pub(crate) fn map(file: BorrowedFd<'_>, bytes: usize) -> rustix::io::Result<SharedBytes> {
        assert!(bytes >= size_of::<Page>(), "a session's memory holds the queue page");
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let base = unsafe { mmap(null_mut(), bytes, prot, MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(base).expect("the kernel maps nothing at address zero unasked");
        Ok(SharedBytes { base: base.cast(), bytes })
    }

    /// Bytes mapped.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Gives the pages of the file back to the system.
    pub(crate) fn discard(&self) -> rustix::io::Result<()> {
        let base = self.base.as_ptr().cast();
        // The kernel does not take locked pages away.
        // SAFETY: the range is this mapping; whether it may be paged out changes no content.
        unsafe { munlock(base, self.bytes)? };
        // SAFETY: the range is this mapping, of which nobody has a reference to bytes. The page's
        // atomics take any value, also when it changes to zero under a reader.
        unsafe { madvise(base, self.bytes, Advice::LinuxRemove) }
    }

    /// The queue page.
    pub(crate) fn page(&self) -> &Page {
        // SAFETY: `map` asserts that the page is inside the mapping, which is page aligned; the
        // struct is made of atomics, for which every bit pattern is valid.
        unsafe { self.base.cast().as_ref() }
    }

    /// Copies bytes out, from `at` on.
    pub(crate) fn copy_out(&self, at: usize, into: &mut [u8]) {
        let from = self.address(at, into.len());
        // SAFETY: in bounds by `address`; `into` is the caller's alone and so no part of a mapping
        // that is never handed out.
        unsafe { copy(from, into.as_mut_ptr(), into.len()) };
    }

    /// Copies bytes in, from `at` on.
    pub(crate) fn copy_in(&self, at: usize, from: &[u8]) {
        let into = self.address(at, from.len());
        // SAFETY: in bounds by `address`; `from` is no part of a mapping that is never handed out.
        unsafe { copy(from.as_ptr(), into, from.len()) };
    }

    /// The address of a range, which must be inside the mapping.
    fn address(&self, at: usize, bytes: usize) -> *mut u8 {
        let end = at.checked_add(bytes).expect("a range of a mapping does not overflow");
        assert!(end <= self.bytes, "bytes {at}..{end} lie inside the mapping");
        // SAFETY: the offset is inside the mapping, so the sum stays in one allocation.
        unsafe { self.base.add(at).as_ptr() }
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length; every borrow of it has ended.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
    }
}
