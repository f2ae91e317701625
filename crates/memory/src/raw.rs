//! Mapped memory: the unsafe code that regions rest on; `ring/raw.rs` has the rest of it.
//!
//! Promise: a [`Mapping`] is mapped, whole, for as long as it lives; words of it are handed out
//! and bytes copied only inside its bounds.
//! Never: knows what lies where, except that page 1 is the control page.
//!
//! A mapping is shared with whoever else maps the same file. One process serves a region at a time
//! (`backing` sees to that), others only read it; a program that writes the file on purpose is
//! outside what any mapping can promise.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::atomics::AtomicU64;
use crate::control::{CONTROL_BYTES, ControlPage, PAGE_BYTES};

/// What the processor writes back at once.
#[cfg(target_arch = "x86_64")]
const CACHE_LINE_BYTES: usize = 64;

/// A piece of the address space.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    /// Page 1 of it.
    control: NonNull<ControlPage>,
    bytes: usize,
    synchronous: bool,
}

// SAFETY: the mapping belongs to no thread: it is plain memory, unmapped once, by Drop. What is
// handed out of it is either atomic or guarded by the contracts of `bytes` and `bytes_mut`.
unsafe impl Send for Mapping {}
// SAFETY: as above; no method changes the struct itself.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Fresh zeroed memory of this process alone.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Mapping> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let base = unsafe { mmap_anonymous(null_mut(), bytes, prot, MapFlags::PRIVATE)? };
        // Large pages, where there are any: fewer of them to look up, and to pin for a device.
        // SAFETY: the range was just mapped; the advice changes no content.
        let _ = unsafe { madvise(base, bytes, Advice::LinuxHugepage) };
        Ok(Self::new(base.cast(), bytes, false))
    }

    /// The first `bytes` of a file, for reading and writing.
    pub(crate) fn shared(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        Self::of_file(file, bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED)
    }

    /// The first `bytes` of a DAX file, such that stores reach the persistent memory itself.
    pub(crate) fn synchronous(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
        Self::of_file(file, bytes, ProtFlags::READ | ProtFlags::WRITE, flags)
    }

    /// The first `bytes` of a file, for reading only.
    pub(crate) fn read_only(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        Self::of_file(file, bytes, ProtFlags::READ, MapFlags::SHARED)
    }

    fn of_file(
        file: BorrowedFd<'_>,
        bytes: usize,
        prot: ProtFlags,
        flags: MapFlags,
    ) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let base = unsafe { mmap(null_mut(), bytes, prot, flags, file, 0)? };
        let synchronous = flags.contains(MapFlags::SYNC);
        Ok(Self::new(base.cast(), bytes, synchronous))
    }

    fn new(base: *mut u8, bytes: usize, synchronous: bool) -> Mapping {
        let base = NonNull::new(base).expect("the kernel maps nothing at address zero unasked");
        assert!(bytes as u64 >= PAGE_BYTES + CONTROL_BYTES, "a mapping holds the first two pages");
        // SAFETY: the page begins inside the mapping, by the assertion above.
        let control = unsafe { base.add(PAGE_BYTES as usize) }.cast();
        Mapping { base, control, bytes, synchronous }
    }

    /// Bytes mapped.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.bytes as u64
    }

    /// Whether [`Mapping::persist`] makes stores outlive the operating system: the mapping is of
    /// persistent memory itself, and there is a way to write the processor's caches back to it.
    #[inline]
    pub(crate) fn persists(&self) -> bool {
        self.synchronous && cfg!(target_arch = "x86_64")
    }

    /// Makes stores to these bytes outlive what the medium outlives, before any later store.
    /// Costs nothing where memory of the kernel's keeps them anyway.
    #[inline]
    pub(crate) fn persist(&self, offset: u64, bytes: u64) {
        if self.persists() && bytes != 0 {
            self.write_back(offset, bytes);
        }
    }

    /// Makes the control page's words outlive what the medium outlives.
    #[inline]
    pub(crate) fn persist_control(&self) {
        self.persist(PAGE_BYTES, size_of::<ControlPage>() as u64);
    }

    /// Writes the processor's caches back to memory: a crash of the operating system does not.
    #[cfg(target_arch = "x86_64")]
    fn write_back(&self, offset: u64, bytes: u64) {
        use std::arch::x86_64::{_mm_clflush, _mm_sfence};
        let first = self.address(offset, bytes).as_ptr();
        for at in (0..bytes as usize + CACHE_LINE_BYTES).step_by(CACHE_LINE_BYTES) {
            // The last step may land behind the range, but on the line its last byte is on.
            let at = at.min(bytes as usize - 1);
            // SAFETY: the address is inside the mapping; flushing a line changes no content, and
            // every x86-64 processor has the instruction.
            unsafe { _mm_clflush(first.add(at)) };
        }
        // SAFETY: an ordering instruction that every x86-64 processor has.
        unsafe { _mm_sfence() };
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn write_back(&self, _offset: u64, _bytes: u64) {}

    /// Has the processor fetch these bytes, which will be written soon. A hint: they need not even
    /// be in the mapping.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn fetch_to_write(&self, offset: u64, bytes: u64) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        let first = self.base.as_ptr().wrapping_add(offset as usize);
        for line in (0..bytes as usize).step_by(CACHE_LINE_BYTES) {
            // SAFETY: the instruction neither reads nor writes, whatever the address is.
            unsafe { _mm_prefetch::<_MM_HINT_ET0>(first.wrapping_add(line).cast()) };
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn fetch_to_write(&self, _offset: u64, _bytes: u64) {}

    /// Asks for the pages of these bytes now rather than on first touch. A hint: it may do nothing.
    pub(crate) fn populate(&self, offset: u64, bytes: u64) {
        let first = self.address(offset, bytes).as_ptr().cast();
        // SAFETY: the range is inside the mapping; the advice changes no content.
        let _ = unsafe { madvise(first, bytes as usize, Advice::LinuxPopulateWrite) };
    }

    /// The control page.
    #[inline]
    pub(crate) fn control(&self) -> &ControlPage {
        // SAFETY: `new` asserts that the page is inside the mapping; it is page aligned; the
        // struct is made of atomics, for which every bit pattern is valid.
        unsafe { self.control.as_ref() }
    }

    /// A range of the mapping as words. The range is never one that `bytes_mut` is used on.
    pub(crate) fn words(&self, range: Range<u64>) -> &[AtomicU64] {
        let bytes = range.end - range.start;
        assert!(range.start.is_multiple_of(8) && bytes.is_multiple_of(8), "words are aligned");
        let first = self.address(range.start, bytes).cast::<AtomicU64>();
        // SAFETY: in bounds by `address`, aligned by the assert and the page-aligned base, and
        // valid whatever the bytes are.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), (bytes / 8) as usize) }
    }

    /// Bytes of the mapping.
    ///
    /// # Safety
    /// While the slice lives, nobody writes these bytes.
    pub(crate) unsafe fn bytes(&self, offset: u64, bytes: u64) -> &[u8] {
        let first = self.address(offset, bytes);
        // SAFETY: in bounds by `address`; unwritten by this function's contract.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), bytes as usize) }
    }

    /// Bytes of the mapping, to be written.
    ///
    /// # Safety
    /// While the slice lives, nobody else reads or writes these bytes, and the mapping is not
    /// read-only.
    #[allow(clippy::mut_from_ref)] // the contract makes the borrow unique, not the receiver
    #[inline]
    pub(crate) unsafe fn bytes_mut(&self, offset: u64, bytes: u64) -> &mut [u8] {
        let first = self.address(offset, bytes);
        // SAFETY: in bounds by `address`; unique by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), bytes as usize) }
    }

    /// Copies bytes out, which others may write meanwhile. The range is never one that `bytes` or
    /// `bytes_mut` is used on.
    #[inline]
    pub(crate) fn copy_out(&self, offset: u64, into: &mut [u8]) {
        let from = self.address(offset, into.len() as u64);
        // SAFETY: in bounds by `address`; `into` is the caller's alone and so no part of bytes
        // that are never handed out.
        unsafe { copy(from.as_ptr(), into.as_mut_ptr(), into.len()) };
    }

    /// Copies bytes in, which others may read meanwhile. The range is as for `copy_out`, and the
    /// mapping is not read-only.
    #[inline]
    pub(crate) fn copy_in(&self, offset: u64, from: &[u8]) {
        let into = self.address(offset, from.len() as u64);
        // SAFETY: in bounds by `address`; `from` is no part of bytes that are never handed out.
        unsafe { copy(from.as_ptr(), into.as_ptr(), from.len()) };
    }

    /// The address of `bytes` bytes from `offset`, which must be inside the mapping.
    #[inline]
    pub(crate) fn address(&self, offset: u64, bytes: u64) -> NonNull<u8> {
        let end = offset.checked_add(bytes).expect("a range of a region does not overflow");
        assert!(end <= self.len(), "bytes {offset}..{end} lie inside the mapping");
        // SAFETY: the offset is inside the mapping, so the sum stays in one allocation.
        unsafe { self.base.add(offset as usize) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; every borrow of it has ended.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
    }
}

/// Copies bytes of which either side may be written by another thread or process meanwhile.
///
/// # Safety
/// Both ranges are mapped, and do not overlap. Nobody has a reference to bytes that are written
/// meanwhile.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn copy(from: *const u8, into: *mut u8, bytes: usize) {
    // SAFETY: the instruction reads and writes exactly these ranges, by this function's contract;
    // the direction flag is clear on entry to every asm block.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rsi") from => _,
            inout("rdi") into => _,
            options(nostack, preserves_flags)
        );
    }
}

/// As above, byte by byte.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn copy(from: *const u8, into: *mut u8, bytes: usize) {
    for at in 0..bytes {
        // SAFETY: in range by this function's contract; volatile, as another may write.
        unsafe { into.add(at).write_volatile(from.add(at).read_volatile()) };
    }
}
