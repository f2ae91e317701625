//! Which requests were taken and not answered, in memory that outlives this process.
//!
//! Promise: at every instruction the area, together with the used ring, says of each request
//! whether it was answered. Source: the vhost-user specification, "Inflight I/O tracking", split
//! virtqueues. The frontend keeps the area, so what is read from it is checked.
//! Never: is mapped unless it is sealed against shrinking.
//!
//! Behind the queues the area has one byte of our own: whether the guest switched the write cache
//! off, which a frontend does not say again to the next process.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};
use vhost::vhost_user::message::VhostUserInflight;
use vm_memory::{Bytes, MmapRegion, VolatileMemory};

use super::memory::map;
use super::raw::Guard;

#[cfg(test)]
mod tests;

/// Head of a queue's part: features, version, number of entries, last head answered, used index.
const HEAD_BYTES: usize = 16;
const VERSION_AT: usize = 8;
const ENTRIES_AT: usize = 10;
const LAST_HEAD_AT: usize = 12;
const USED_INDEX_AT: usize = 14;

/// An entry a head: taken or not, next of its batch, and a number that grows with each request.
const ENTRY_BYTES: usize = 16;
const NEXT_AT: usize = 6;
const COUNTER_AT: usize = 8;

const VERSION: u16 = 1;
const ALIGNMENT_BYTES: usize = 64;
/// Behind the last queue.
const OWN_BYTES: usize = 64;
/// Largest queue of the specification.
const QUEUE_SIZE_MAX: u16 = 32768;

/// Why an area cannot be used.
#[derive(Debug)]
pub(crate) enum InflightFault {
    /// Its numbers, or its version.
    Numbers,
    /// Its file is too short, or could become so.
    File,
    /// The system does not make or map it.
    Map(io::Error),
}

/// The area of all queues.
pub(crate) struct Inflight {
    guard: Guard,
    memory: Arc<MmapRegion>,
    queues: u16,
    queue_size: u16,
}

impl Inflight {
    /// A new area, for the frontend to keep.
    pub(crate) fn create(
        queues: u16,
        queue_size: u16,
        write_through: bool,
    ) -> Result<(VhostUserInflight, File), InflightFault> {
        let bytes = area_bytes(queues, queue_size)?;
        let file = sealed_file(bytes as u64).map_err(|error| InflightFault::Map(error.into()))?;
        let numbers = VhostUserInflight::new(bytes as u64, 0, queues, queue_size);
        let area = Inflight::adopt(&numbers, file.try_clone().map_err(InflightFault::Map)?)?;
        for queue in 0..queues {
            let start = usize::from(queue) * part_bytes(queue_size);
            area.store(start + ENTRIES_AT, queue_size);
            area.store(start + VERSION_AT, VERSION);
        }
        area.set_write_through(write_through);
        Ok((numbers, file))
    }

    /// The area that the frontend kept.
    pub(crate) fn adopt(numbers: &VhostUserInflight, file: File) -> Result<Self, InflightFault> {
        let VhostUserInflight { mmap_size, mmap_offset, num_queues, queue_size } = *numbers;
        let bytes = area_bytes(num_queues, queue_size)?;
        let end = mmap_offset.checked_add(bytes as u64).ok_or(InflightFault::Numbers)?;
        let seals = fcntl_get_seals(file.as_fd()).map_err(|_| InflightFault::File)?;
        let length = file.metadata().map_err(InflightFault::Map)?.len();
        if mmap_size != bytes as u64 || length < end || !seals.contains(SealFlags::SHRINK) {
            return Err(InflightFault::File);
        }
        let (guard, memory) = map(file, mmap_offset, bytes).map_err(|_| {
            InflightFault::Map(io::Error::other("an inflight area that cannot be mapped"))
        })?;
        Ok(Self { guard, memory, queues: num_queues, queue_size })
    }

    /// The part of one queue.
    pub(crate) fn queue(
        self: &Arc<Self>,
        queue: usize,
        size: u16,
    ) -> Result<InflightQueue, InflightFault> {
        if queue >= usize::from(self.queues) || size > self.queue_size {
            return Err(InflightFault::Numbers);
        }
        let start = queue * part_bytes(self.queue_size);
        match self.load::<u16>(start + VERSION_AT) {
            // A frontend may bring an area that nobody has used.
            0 => self.store(start + VERSION_AT, VERSION),
            VERSION => {}
            _ => return Err(InflightFault::Numbers),
        }
        Ok(InflightQueue { area: self.clone(), start, size, counter: 0 })
    }

    /// Whether the guest switched the write cache off.
    pub(crate) fn is_write_through(&self) -> bool {
        self.load::<u8>(self.own()) != 0
    }

    pub(crate) fn set_write_through(&self, write_through: bool) {
        self.store(self.own(), u8::from(write_through));
    }

    fn own(&self) -> usize {
        usize::from(self.queues) * part_bytes(self.queue_size)
    }

    fn load<T: vm_memory::AtomicAccess>(&self, at: usize) -> T {
        self.memory.as_volatile_slice().load(at, SeqCst).expect("an aligned place inside")
    }

    fn store<T: vm_memory::AtomicAccess>(&self, at: usize, value: T) {
        self.memory.as_volatile_slice().store(value, at, SeqCst).expect("an aligned place inside");
    }
}

/// What one queue has taken and not answered.
pub(crate) struct InflightQueue {
    area: Arc<Inflight>,
    start: usize,
    size: u16,
    counter: u64,
}

impl InflightQueue {
    /// Settles what the process before was in the middle of, and returns the heads that it took and
    /// did not answer, in the order in which it took them. `used_index` is that of the used ring.
    pub(crate) fn recover(&mut self, used_index: u16) -> Vec<u16> {
        self.settle(used_index);
        let entries = (0..self.size).filter(|head| self.area.load::<u8>(self.entry(*head)) == 1);
        let counter = |head| self.area.load::<u64>(self.entry(head) + COUNTER_AT);
        let mut taken: Vec<(u64, u16)> = entries.map(|head| (counter(head), head)).collect();
        taken.sort_unstable();
        self.counter = taken.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        taken.into_iter().map(|(_, head)| head).collect()
    }

    /// A batch whose heads are in the used ring, and which may not be crossed out here yet.
    fn settle(&self, used_index: u16) {
        let noted = self.area.load::<u16>(self.start + USED_INDEX_AT);
        let batch = used_index.wrapping_sub(noted).min(self.size);
        let mut head = self.area.load::<u16>(self.start + LAST_HEAD_AT);
        for _ in 0..batch {
            if head >= self.size {
                break;
            }
            self.area.store(self.entry(head), 0_u8);
            head = self.area.load(self.entry(head) + NEXT_AT);
        }
        self.area.store(self.start + USED_INDEX_AT, used_index);
    }

    /// Whether the machine had no room for the area: what it says is not to be believed.
    pub(crate) fn is_lost(&self) -> bool {
        self.area.guard.is_lost()
    }

    /// Before a request is looked at.
    pub(crate) fn take(&mut self, head: u16) {
        let entry = self.entry(head);
        self.area.store(entry + COUNTER_AT, self.counter);
        self.area.store(entry, 1_u8);
        self.counter = self.counter.wrapping_add(1);
    }

    /// Before the used ring shows an answer. Every answer is a batch of its own, whose end it is.
    pub(crate) fn begin_answer(&mut self, head: u16) {
        self.area.store(self.entry(head) + NEXT_AT, head);
        self.area.store(self.start + LAST_HEAD_AT, head);
    }

    /// After the used ring shows it, at `used_index` now.
    pub(crate) fn end_answer(&mut self, head: u16, used_index: u16) {
        self.area.store(self.entry(head), 0_u8);
        self.area.store(self.start + USED_INDEX_AT, used_index);
    }

    fn entry(&self, head: u16) -> usize {
        self.start + HEAD_BYTES + usize::from(head) * ENTRY_BYTES
    }
}

/// Bytes of one queue's part.
fn part_bytes(queue_size: u16) -> usize {
    (HEAD_BYTES + usize::from(queue_size) * ENTRY_BYTES).next_multiple_of(ALIGNMENT_BYTES)
}

fn area_bytes(queues: u16, queue_size: u16) -> Result<usize, InflightFault> {
    if queues == 0 || queue_size == 0 || queue_size > QUEUE_SIZE_MAX {
        return Err(InflightFault::Numbers);
    }
    Ok(usize::from(queues) * part_bytes(queue_size) + OWN_BYTES)
}

fn sealed_file(bytes: u64) -> rustix::io::Result<File> {
    let file = memfd_create("vhost-inflight", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file.into())
}
