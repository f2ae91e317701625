//! The lease: until when memory may acknowledge, told to other processes.
//!
//! Promise: whoever looks at it after it was taken back, or after it has ended, does not hold it.
//! It ends by itself at the time that it names, on a clock that all processes share and that goes
//! on while the machine sleeps. One that is read while it is written is not held.
//! Never: waits for whoever writes it, or reads it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::MemfdFlags;
use rustix::time::{ClockId, clock_gettime};

/// What the numbers of a lease have to add up to, with the last one.
const WHOLE: u64 = 0x6c65_6173_6521_0003;
const NUMBERS: usize = 7;
const BYTES: usize = 8 * NUMBERS;

/// What is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// When it ends, in milliseconds of [`now_ms`]; 0 if memory may not acknowledge.
    pub until_ms: u64,
    /// How often it was taken back.
    pub taken_back: u64,
    /// How long may be drained after the mains have failed, in milliseconds.
    pub drain_ms: u64,
    /// How many share that time.
    pub sharers: u64,
    /// How many bytes a second all devices together took when that was tried.
    pub bytes_per_s_max: u64,
    /// Until when, in milliseconds of [`now_ms`], disks are to be left to the drain; 0 if the power
    /// does not fail, or nothing is in memory alone.
    pub hurried_until_ms: u64,
}

impl Lease {
    /// Whether memory may acknowledge now.
    #[must_use]
    pub fn is_held(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }

    /// Whether disks are to be left to the drain now.
    #[must_use]
    pub fn is_hurried(&self, now_ms: u64) -> bool {
        now_ms < self.hurried_until_ms
    }

    /// How many bytes may be in memory alone, where a device takes that many a second.
    #[must_use]
    pub fn dirty_bytes_max(&self, bytes_per_s: u64) -> u64 {
        let bytes_per_s = bytes_per_s.min(self.bytes_per_s_max);
        let bytes = u128::from(bytes_per_s) * u128::from(self.drain_ms) / 1000;
        u64::try_from(bytes / u128::from(self.sharers.max(1))).unwrap_or(u64::MAX)
    }

    fn numbers(&self) -> [u64; NUMBERS] {
        let others = [
            self.until_ms,
            self.taken_back,
            self.drain_ms,
            self.sharers,
            self.bytes_per_s_max,
            self.hurried_until_ms,
        ];
        let sum = others.iter().fold(WHOLE, |sum, it| sum.rotate_left(7) ^ it);
        let mut numbers = [sum; NUMBERS];
        numbers[..others.len()].copy_from_slice(&others);
        numbers
    }

    /// What these numbers say, if they are whole.
    fn of(numbers: [u64; NUMBERS]) -> Option<Lease> {
        let [until_ms, taken_back, drain_ms, sharers, bytes_per_s_max, hurried_until_ms, _] =
            numbers;
        let lease =
            Lease { until_ms, taken_back, drain_ms, sharers, bytes_per_s_max, hurried_until_ms };
        (lease.numbers() == numbers).then_some(lease)
    }
}

/// Memory without a name in which the lease is written.
#[derive(Debug)]
pub struct Page(File);

impl Page {
    /// One in which memory may not acknowledge.
    ///
    /// # Errors
    /// The machine has no memory or descriptor for it.
    pub fn new() -> io::Result<Page> {
        let page = rustix::fs::memfd_create("holdfast-power", MemfdFlags::CLOEXEC)?;
        let page = Page(File::from(page));
        page.write(&Lease::default())?;
        Ok(page)
    }

    /// One that another process writes.
    #[must_use]
    pub fn of(page: OwnedFd) -> Page {
        Page(File::from(page))
    }

    /// The same, for another owner.
    ///
    /// # Errors
    /// The process has no descriptor for it.
    pub fn try_clone(&self) -> io::Result<Page> {
        self.0.try_clone().map(Page)
    }

    /// Whoever looks from now on sees this.
    ///
    /// # Errors
    /// The machine has no memory for it.
    pub fn write(&self, lease: &Lease) -> io::Result<()> {
        let bytes: Vec<u8> = lease.numbers().iter().flat_map(|it| it.to_le_bytes()).collect();
        self.0.write_all_at(&bytes, 0)
    }

    /// What is written; not held if that is not whole.
    #[must_use]
    pub fn read(&self) -> Lease {
        let mut bytes = [0; BYTES];
        let is_read = self.0.read_exact_at(&mut bytes, 0).is_ok();
        let number = |at: usize| {
            u64::from_le_bytes(std::array::from_fn(|of_number| bytes[8 * at + of_number]))
        };
        let numbers: [u64; NUMBERS] = std::array::from_fn(number);
        Lease::of(numbers).filter(|_| is_read).unwrap_or_default()
    }

    /// Whether memory may acknowledge now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.read().is_held(now_ms())
    }
}

impl AsFd for Page {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Milliseconds since the system started, those of its sleep among them.
#[must_use]
pub fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000
}

#[cfg(test)]
mod tests;
