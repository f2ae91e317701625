//! A hypervisor with one guest, whose driver writes the rings by hand. Numbers are written out here
//! a second time, on purpose.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserInflight};
use vhost::vhost_user::{
    Frontend, VhostUserFrontend, VhostUserProtocolFeatures, VhostUserVirtioFeatures,
};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

pub(crate) const READ: u32 = 0;
pub(crate) const WRITE: u32 = 1;
pub(crate) const FLUSH: u32 = 4;
pub(crate) const GET_ID: u32 = 8;
pub(crate) const DISCARD: u32 = 11;
pub(crate) const WRITE_ZEROES: u32 = 13;

pub(crate) const OK: u8 = 0;
pub(crate) const IO_ERROR: u8 = 1;
pub(crate) const UNSUPPORTED: u8 = 2;

pub(crate) const F_CONFIG_WCE: u64 = 1 << 11;
pub(crate) const F_EVENT_IDX: u64 = 1 << 29;

/// The hypervisor's own address of the guest's memory.
const USER_START: u64 = 0x7f00_0000_0000;
pub(crate) const MEMORY_BYTES: u64 = 16 << 20;

pub(crate) const QUEUE_SIZE: u16 = 64;
/// Requests of a queue at a time: each has a header, data and a status.
pub(crate) const SLOTS: usize = QUEUE_SIZE as usize / 3;
pub(crate) const DATA_BYTES: u64 = 64 << 10;
/// A queue's rings and buffers.
const QUEUE_BYTES: u64 = 4 << 20;
const AVAILABLE_AT: u64 = 0x1000;
const USED_AT: u64 = 0x2000;
const HEADERS_AT: u64 = 0x4000;
const DATA_AT: u64 = 0x10000;

/// What a status is before the device wrote one.
const NO_STATUS: u8 = 0xaa;
/// Longest wait for an answer; only a broken device needs it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Address, bytes, flags, next.
pub(crate) type Descriptor = (u64, u32, u16, u16);

/// What outlives a device: the guest, and the inflight area.
pub(crate) struct Guest {
    memory_file: File,
    pub(crate) memory: GuestMemoryMmap,
    pub(crate) queues: Vec<Queue>,
    inflight: Option<(VhostUserInflight, File)>,
    pub(crate) features: u64,
    frontend: Option<Frontend>,
}

/// A driver's side of one queue.
pub(crate) struct Queue {
    pub(crate) start: u64,
    pub(crate) available: u16,
    seen: u16,
    /// Heads that wait for an answer.
    pub(crate) is_waiting: [bool; SLOTS],
    /// Answers to what was not asked.
    pub(crate) faults: Vec<String>,
    kick: EventFd,
    pub(crate) call: EventFd,
    pub(crate) error: EventFd,
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) slot: usize,
    pub(crate) status: u8,
    pub(crate) bytes: u32,
}

impl Guest {
    pub(crate) fn new(queues: u64) -> Guest {
        let memory_file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory_file, MEMORY_BYTES).unwrap();
        let memory_file = File::from(memory_file);
        let file = FileOffset::new(memory_file.try_clone().unwrap(), 0);
        let range = (GuestAddress(0), MEMORY_BYTES as usize, Some(file));
        let memory = GuestMemoryMmap::from_ranges_with_files([range]).unwrap();
        let queues = (0..queues).map(|index| Queue::new(index * QUEUE_BYTES)).collect();
        let features = 1 << 32 | F_EVENT_IDX | 1 << 28 | 1 << 9 | F_CONFIG_WCE;
        Guest { memory_file, memory, queues, inflight: None, features, frontend: None }
    }

    /// Connects to a device, as a hypervisor does at the start and after the device went.
    pub(crate) fn connect(&mut self, socket: UnixStream) {
        let mut frontend = Frontend::from_stream(socket, self.queues.len() as u64);
        frontend.set_owner().unwrap();
        let offered = frontend.get_features().unwrap();
        assert_eq!(self.features & !offered, 0, "a feature is not offered");
        let protocol = frontend.get_protocol_features().unwrap();
        let wanted = VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS;
        assert!(protocol.contains(wanted), "{protocol:?}");
        frontend.set_protocol_features(wanted).unwrap();
        frontend.set_hdr_flags(vhost::vhost_user::message::VhostUserHeaderFlag::NEED_REPLY);
        assert!(frontend.get_queue_num().unwrap() >= self.queues.len() as u64);
        let own = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();
        frontend.set_features(self.features | own).unwrap();
        if self.inflight.is_none() {
            let wanted = VhostUserInflight::new(0, 0, self.queues.len() as u16, QUEUE_SIZE);
            self.inflight = Some(frontend.get_inflight_fd(&wanted).unwrap());
        }
        let (numbers, file) = self.inflight.as_ref().unwrap();
        frontend.set_inflight_fd(numbers, file.as_raw_fd()).unwrap();
        frontend.set_mem_table(&[self.region()]).unwrap();
        for (index, queue) in self.queues.iter().enumerate() {
            queue.announce(&frontend, index, &self.memory);
            frontend.set_vring_enable(index, true).unwrap();
        }
        self.frontend = Some(frontend);
    }

    pub(crate) fn region(&self) -> VhostUserMemoryRegionInfo {
        VhostUserMemoryRegionInfo {
            guest_phys_addr: 0,
            memory_size: MEMORY_BYTES,
            userspace_addr: USER_START,
            mmap_offset: 0,
            mmap_handle: self.memory_file.as_raw_fd(),
        }
    }

    pub(crate) fn frontend(&mut self) -> &mut Frontend {
        self.frontend.as_mut().unwrap()
    }

    /// Takes its memory away behind so many bytes.
    pub(crate) fn shrink_to(&self, bytes: u64) {
        ftruncate(&self.memory_file, bytes).unwrap();
    }

    /// Writes a request into slot 0 of the first queue, and tells nobody.
    pub(crate) fn describe(&mut self, slot: usize, kind: u32, sector: u64, data: Data<'_>) {
        self.queues[0].is_waiting[slot] = true;
        self.queues[0].describe(&self.memory, slot, kind, sector, data);
    }

    /// Makes a head of the first queue available.
    pub(crate) fn publish(&mut self, queue: usize, head: u16) {
        self.queues[queue].publish(&self.memory, head);
    }

    /// The connection is gone.
    pub(crate) fn disconnect(&mut self) {
        self.frontend = None;
    }

    /// Loses the inflight area.
    pub(crate) fn forget(&mut self) {
        self.inflight = None;
    }

    pub(crate) fn config(&mut self, offset: u32, bytes: u32) -> Vec<u8> {
        let empty = vec![0; bytes as usize];
        let flags = VhostUserConfigFlags::empty();
        self.frontend().get_config(offset, bytes, flags, &empty).unwrap().1
    }

    /// Asks for something, with one piece of data; returns the slot in which it waits.
    pub(crate) fn ask(&mut self, queue: usize, kind: u32, sector: u64, data: Data<'_>) -> usize {
        let queue = &mut self.queues[queue];
        let slot = queue.is_waiting.iter().position(|is_waiting| !is_waiting).unwrap();
        queue.describe(&self.memory, slot, kind, sector, data);
        queue.publish(&self.memory, slot as u16 * 3);
        queue.is_waiting[slot] = true;
        slot
    }

    /// The next answer; panics if there is none for long, or one for what was not asked.
    pub(crate) fn next(&mut self, queue: usize) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = self.answer(queue) {
                assert_eq!(self.queues[queue].faults, Vec::<String>::new());
                return answer;
            }
            while !self.is_told(queue) {
                assert!(Instant::now() < deadline, "told of no answer");
                thread::sleep(Duration::from_micros(50));
            }
        }
    }

    /// Whether the device told of an answer since the last call.
    pub(crate) fn is_told(&self, queue: usize) -> bool {
        self.queues[queue].call.read().is_ok()
    }

    /// The next answer, if it is there.
    pub(crate) fn answer(&mut self, queue: usize) -> Option<Answer> {
        self.queues[queue].used(&self.memory)
    }

    /// Asks and waits for the answer, which is the only one.
    pub(crate) fn do_one(&mut self, kind: u32, sector: u64, data: Data<'_>) -> u8 {
        let slot = self.ask(0, kind, sector, data);
        let answer = self.next(0);
        assert_eq!(answer.slot, slot, "another answer");
        answer.status
    }

    /// What the device gave in a slot.
    pub(crate) fn given(&self, queue: usize, slot: usize, bytes: usize) -> Vec<u8> {
        let mut given = vec![0; bytes];
        let at = self.queues[queue].data_at(slot);
        self.memory.read_slice(&mut given, at).unwrap();
        given
    }
}

/// The data of a request.
#[derive(Clone, Copy)]
pub(crate) enum Data<'a> {
    /// For the device.
    Given(&'a [u8]),
    /// Room for so many bytes.
    Room(u32),
}

impl Queue {
    fn new(start: u64) -> Queue {
        let bell = || EventFd::new(rustix::fs::OFlags::NONBLOCK.bits() as i32).unwrap();
        let (kick, call, error) = (bell(), bell(), bell());
        let (is_waiting, faults) = ([false; SLOTS], Vec::new());
        Queue { start, available: 0, seen: 0, is_waiting, faults, kick, call, error }
    }

    /// As QEMU does: the place to go on is what was answered.
    fn announce(&self, frontend: &Frontend, index: usize, memory: &GuestMemoryMmap) {
        let used = self.used_index(memory);
        let start = USER_START + self.start;
        frontend.set_vring_num(index, QUEUE_SIZE).unwrap();
        frontend.set_vring_base(index, used).unwrap();
        let place = VringConfigData {
            queue_max_size: QUEUE_SIZE,
            queue_size: QUEUE_SIZE,
            flags: 0,
            desc_table_addr: start,
            used_ring_addr: start + USED_AT,
            avail_ring_addr: start + AVAILABLE_AT,
            log_addr: None,
        };
        frontend.set_vring_addr(index, &place).unwrap();
        frontend.set_vring_err(index, &self.error).unwrap();
        frontend.set_vring_call(index, &self.call).unwrap();
        frontend.set_vring_kick(index, &self.kick).unwrap();
    }

    pub(crate) fn data_at(&self, slot: usize) -> GuestAddress {
        GuestAddress(self.start + DATA_AT + slot as u64 * DATA_BYTES)
    }

    pub(crate) fn header_at(&self, slot: usize) -> GuestAddress {
        GuestAddress(self.start + HEADERS_AT + slot as u64 * 32)
    }

    fn status_at(&self, slot: usize) -> GuestAddress {
        GuestAddress(self.header_at(slot).0 + 16)
    }

    /// Writes one descriptor.
    pub(crate) fn descriptor(
        &self,
        memory: &GuestMemoryMmap,
        index: usize,
        (address, bytes, flags, next): Descriptor,
    ) {
        let at = |offset| GuestAddress(self.start + index as u64 * 16 + offset);
        memory.write_obj(address, at(0)).unwrap();
        memory.write_obj(bytes, at(8)).unwrap();
        memory.write_obj(flags, at(12)).unwrap();
        memory.write_obj(next, at(14)).unwrap();
    }

    fn describe(
        &self,
        memory: &GuestMemoryMmap,
        slot: usize,
        kind: u32,
        sector: u64,
        data: Data<'_>,
    ) {
        let (header, status) = (self.header_at(slot), self.status_at(slot));
        memory.write_obj(kind, header).unwrap();
        memory.write_obj(0_u32, GuestAddress(header.0 + 4)).unwrap();
        memory.write_obj(sector, GuestAddress(header.0 + 8)).unwrap();
        memory.write_obj(NO_STATUS, status).unwrap();
        let first = slot * 3;
        let (bytes, flags) = match data {
            Data::Given(given) => {
                memory.write_slice(given, self.data_at(slot)).unwrap();
                (given.len() as u32, 1)
            }
            Data::Room(bytes) => (bytes, 1 | 2),
        };
        assert!(u64::from(bytes) <= DATA_BYTES);
        let next = |index: usize| (first + index) as u16;
        self.descriptor(memory, first, (header.0, 16, 1, next(1)));
        self.descriptor(memory, first + 1, (self.data_at(slot).0, bytes, flags, next(2)));
        self.descriptor(memory, first + 2, (status.0, 1, 2, 0));
    }

    /// Makes a head available and tells the device.
    pub(crate) fn publish(&mut self, memory: &GuestMemoryMmap, head: u16) {
        let ring = self.start + AVAILABLE_AT;
        let at = ring + 4 + u64::from(self.available % QUEUE_SIZE) * 2;
        memory.write_obj(head, GuestAddress(at)).unwrap();
        self.available = self.available.wrapping_add(1);
        memory.store(self.available, GuestAddress(ring + 2), SeqCst).unwrap();
        self.kick.write(1).unwrap();
    }

    /// Tells the device to look.
    pub(crate) fn kick(&self) {
        self.kick.write(1).unwrap();
    }

    /// How many answers there were.
    pub(crate) fn used_index(&self, memory: &GuestMemoryMmap) -> u16 {
        memory.load(GuestAddress(self.start + USED_AT + 2), SeqCst).unwrap()
    }

    /// The next answer in the used ring.
    fn used(&mut self, memory: &GuestMemoryMmap) -> Option<Answer> {
        let ring = self.start + USED_AT;
        if self.used_index(memory) == self.seen {
            return None;
        }
        let at = ring + 4 + u64::from(self.seen % QUEUE_SIZE) * 8;
        let head: u32 = memory.read_obj(GuestAddress(at)).unwrap();
        let bytes = memory.read_obj(GuestAddress(at + 4)).unwrap();
        self.seen = self.seen.wrapping_add(1);
        // The device is to tell of the next answer.
        let event = self.start + AVAILABLE_AT + 4 + u64::from(QUEUE_SIZE) * 2;
        memory.store(self.seen, GuestAddress(event), SeqCst).unwrap();
        assert!(
            head.is_multiple_of(3) && head < u32::from(QUEUE_SIZE),
            "no head of a request: {head}"
        );
        let slot = head as usize / 3;
        if !std::mem::take(&mut self.is_waiting[slot]) {
            self.faults.push(format!("answered twice: slot {slot}"));
        }
        let status = memory.read_obj(self.status_at(slot)).unwrap();
        Some(Answer { slot, status, bytes })
    }
}
