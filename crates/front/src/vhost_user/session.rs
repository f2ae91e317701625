//! What one frontend has said.
//!
//! Promise: a queue runs while it has rings, a bell, memory, and is enabled; every change of those
//! stops it first, with all that it took answered. What is out of order is refused, which ends the
//! connection.
//! Never: touches a ring.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{
    Error, GpuBackend, Result, VhostUserBackendReqHandlerMut, VhostUserProtocolFeatures,
    VhostUserVirtioFeatures,
};

use super::inflight::{Inflight, InflightFault};
use super::memory::{Guest, MemoryFault, REGIONS_MAX, Regions};
use super::queue::{Bell, Shared, Stop, Worker, ring};
use super::ring::{Place, Ring};
use super::serve::Disk;
use super::wire::{WCE_AT, configuration, feature};

/// Answers to questions about the configuration have zeros behind what this device has.
const CONFIG_BYTES_MAX: usize = 256;

const PROTOCOL_FEATURES: u64 = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();

/// One frontend's device.
pub(crate) struct Session<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    disk: &'env Disk<'env>,
    shared: Arc<Shared>,
    features: u64,
    /// The guest's own word about the write cache, which counts if it may say so.
    wce: bool,
    regions: Regions,
    memory: Option<Arc<Guest>>,
    inflight: Option<Arc<Inflight>>,
    queues: Vec<Queue<'scope>>,
}

/// What was said about one queue.
#[derive(Default)]
struct Queue<'scope> {
    size: u16,
    /// Descriptors, available ring and used ring, in the frontend's addresses.
    rings: Option<[u64; 3]>,
    next_available: u16,
    is_enabled: bool,
    kick: Option<Arc<File>>,
    call: Bell,
    error: Bell,
    running: Option<Running<'scope>>,
}

struct Running<'scope> {
    thread: ScopedJoinHandle<'scope, u16>,
    stop: Arc<Stop>,
}

impl Queue<'_> {
    /// Ends its thread, if it has one.
    fn stop(&mut self) {
        if let Some(Running { thread, stop }) = self.running.take() {
            stop.set();
            self.next_available = thread.join().expect("panics abort");
        }
    }
}

impl<'scope, 'env> Session<'scope, 'env> {
    pub(crate) fn new(
        scope: &'scope Scope<'scope, 'env>,
        disk: &'env Disk<'env>,
        shared: Arc<Shared>,
        queues: u16,
    ) -> Self {
        Self {
            scope,
            disk,
            shared,
            features: 0,
            wce: true,
            regions: Regions::default(),
            memory: None,
            inflight: None,
            queues: (0..queues).map(|_| Queue::default()).collect(),
        }
    }

    /// Ends all threads.
    pub(crate) fn stop(&mut self) {
        // All are told before one is waited for.
        let running = self.queues.iter().filter_map(|queue| queue.running.as_ref());
        running.for_each(|running| running.stop.set());
        self.queues.iter_mut().for_each(Queue::stop);
    }

    fn queue(&mut self, index: impl TryInto<usize>) -> Result<&mut Queue<'scope>> {
        let index = index.try_into().map_err(|_| Error::InvalidParam)?;
        self.queues.get_mut(index).ok_or(Error::InvalidParam)
    }

    /// Changes a queue while it stands still.
    fn change(
        &mut self,
        index: impl TryInto<usize> + Copy,
        change: impl FnOnce(&mut Queue<'scope>),
    ) -> Result<()> {
        let queue = self.queue(index)?;
        queue.stop();
        change(queue);
        self.start(index.try_into().map_err(|_| Error::InvalidParam)?)
    }

    fn start_all(&mut self) -> Result<()> {
        (0..self.queues.len()).try_for_each(|index| self.start(index))
    }

    /// Starts a queue that has all that it needs.
    fn start(&mut self, index: usize) -> Result<()> {
        let Some((place, memory)) = self.place(index)? else { return Ok(()) };
        let inflight = self.inflight.as_ref();
        let inflight = inflight.map(|area| area.queue(index, place.size)).transpose();
        let inflight = inflight.map_err(inflight_refused)?;
        let queue = &mut self.queues[index];
        let (Some(kick), None) = (&queue.kick, &queue.running) else { return Ok(()) };
        let ring = Ring::new(&place, queue.next_available, memory, inflight);
        let ring = ring.map_err(|fault| refused(&fault))?;
        let stop = Arc::new(Stop::new().map_err(Error::ReqHandlerError)?);
        let worker = Worker {
            index,
            ring,
            kick: kick.clone(),
            call: queue.call.clone(),
            error: queue.error.clone(),
            stop: stop.clone(),
            shared: self.shared.clone(),
            disk: self.disk,
            scope: self.scope,
        };
        let builder = Builder::new().name(format!("vhost-{index}"));
        let thread = builder.spawn_scoped(self.scope, move || worker.work());
        queue.running = Some(Running { thread: thread.map_err(Error::ReqHandlerError)?, stop });
        Ok(())
    }

    /// Where the rings of a queue that may run are.
    fn place(&self, index: usize) -> Result<Option<(Place, Arc<Guest>)>> {
        let queue = &self.queues[index];
        let is_enabled = queue.is_enabled || self.features & PROTOCOL_FEATURES == 0;
        let (Some(memory), Some(rings), true) = (&self.memory, queue.rings, is_enabled) else {
            return Ok(None);
        };
        if queue.kick.is_none() {
            return Ok(None);
        }
        let [descriptors, available, used] = rings.map(|at| self.regions.translate(at));
        let missing = || Error::InvalidParam;
        let place = Place {
            size: queue.size,
            descriptors: descriptors.ok_or_else(missing)?,
            available: available.ok_or_else(missing)?,
            used: used.ok_or_else(missing)?,
            event_index: self.features & feature::EVENT_IDX != 0,
        };
        Ok(Some((place, memory.clone())))
    }

    /// Changes the guest's memory while nobody uses it. What fails changes nothing.
    fn change_memory(
        &mut self,
        change: impl FnOnce(&mut Regions) -> std::result::Result<(), MemoryFault>,
    ) -> Result<()> {
        self.stop();
        let mut regions = self.regions.clone();
        let memory = change(&mut regions).and_then(|()| regions.map());
        self.memory = memory.map_err(memory_refused)?;
        self.regions = regions;
        self.start_all()
    }

    /// A driver that cannot write the field has a write cache if it can flush one.
    fn settle_cache(&self) {
        let has_cache = match self.features & feature::CONFIG_WCE {
            0 => self.features & feature::FLUSH != 0,
            _ => self.wce,
        };
        self.shared.write_through.store(!has_cache, Ordering::Relaxed);
    }
}

fn refused(why: &impl std::fmt::Display) -> Error {
    Error::ReqHandlerError(std::io::Error::other(why.to_string()))
}

fn memory_refused(fault: MemoryFault) -> Error {
    Error::ReqHandlerError(std::io::Error::other(match fault {
        MemoryFault::Numbers => "memory that cannot be there",
        MemoryFault::Map => "memory that cannot be mapped",
        MemoryFault::Withheld => "memory in a file whose pages somebody else brings",
        MemoryFault::Missing => "memory that is not there",
    }))
}

fn inflight_refused(fault: InflightFault) -> Error {
    Error::ReqHandlerError(match fault {
        InflightFault::Numbers => std::io::Error::other("an inflight area with wrong numbers"),
        InflightFault::File => std::io::Error::other("an inflight area in a wrong file"),
        InflightFault::Map(error) => error,
    })
}

/// What the kernel calls a counter that can be waited for.
const EVENT_COUNTER: &str = "anon_inode:[eventfd]";

/// A bell that never keeps its ringer waiting. It is an `eventfd`, as the protocol has it, and
/// nothing that could keep something else open: a frontend whose own end of the connection is
/// held here would never be seen to go.
fn bell(file: Option<File>) -> Result<Option<File>> {
    let Some(file) = file else { return Ok(None) };
    let kind = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    if kind.map_err(Error::ReqHandlerError)? != Path::new(EVENT_COUNTER) {
        return Err(refused(&"a bell that is no eventfd"));
    }
    rustix::io::ioctl_fionbio(&file, true).map_err(|_| Error::InvalidParam)?;
    Ok(Some(file))
}

fn put(bell: &Bell, file: Option<File>) {
    *bell.lock().expect("panics abort") = file;
}

const NOT_SPOKEN: Error = Error::InvalidOperation("not spoken here");

impl VhostUserBackendReqHandlerMut for Session<'_, '_> {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.stop();
        self.queues.iter_mut().for_each(|queue| queue.is_enabled = false);
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        Err(NOT_SPOKEN)
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(feature::ALL | PROTOCOL_FEATURES)
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !(feature::ALL | PROTOCOL_FEATURES) != 0 {
            return Err(Error::FeatureMismatch);
        }
        self.stop();
        self.features = features;
        self.settle_cache();
        self.start_all()
    }

    fn set_mem_table(
        &mut self,
        numbers: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _: Option<bool>,
    ) -> Result<Option<Vec<u64>>> {
        self.change_memory(|regions| {
            *regions = Regions::default();
            let mut pairs = numbers.iter().zip(files);
            pairs.try_for_each(|(numbers, file)| regions.add(numbers, file))
        })?;
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, size: u32) -> Result<()> {
        let size = u16::try_from(size).map_err(|_| Error::InvalidParam)?;
        self.change(index, |queue| queue.size = size)
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _: u64,
    ) -> Result<()> {
        self.change(index, |queue| queue.rings = Some([descriptors, available, used]))
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        let base = u16::try_from(base).map_err(|_| Error::InvalidParam)?;
        self.change(index, |queue| queue.next_available = base)
    }

    /// The queue stands still until it has a bell again.
    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let queue = self.queue(index)?;
        queue.stop();
        queue.kick = None;
        put(&queue.call, None);
        Ok(VhostUserVringState::new(index, queue.next_available.into()))
    }

    fn set_vring_kick(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let file = bell(file)?.map(Arc::new);
        self.change(index, |queue| queue.kick = file)
    }

    /// Rings it at once: the device before may have answered without telling any more.
    fn set_vring_call(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let call = &self.queue(index)?.call;
        put(call, bell(file)?);
        ring(call);
        Ok(())
    }

    fn set_vring_err(&mut self, index: u8, file: Option<File>) -> Result<()> {
        put(&self.queue(index)?.error, bell(file)?);
        Ok(())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS)
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<()> {
        let offered = self.get_protocol_features()?.bits();
        if features & !offered == 0 { Ok(()) } else { Err(Error::FeatureMismatch) }
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(self.queues.len() as u64)
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        self.change(index, |queue| queue.is_enabled = enable)
    }

    fn get_config(&mut self, offset: u32, size: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        let queues = self.queues.len() as u16;
        let mut bytes = configuration(self.disk.size_bytes, queues, self.wce).to_vec();
        bytes.resize(CONFIG_BYTES_MAX, 0);
        let start = offset as usize;
        let wanted = start.checked_add(size as usize).and_then(|end| bytes.get(start..end));
        wanted.map(<[u8]>::to_vec).ok_or(Error::InvalidParam)
    }

    /// Only the write cache can be switched. What was answered while it was on is made durable.
    fn set_config(&mut self, offset: u32, bytes: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        let (&[value], WCE_AT) = (bytes, offset as usize) else {
            return Err(Error::InvalidParam);
        };
        self.wce = value != 0;
        if let Some(inflight) = &self.inflight {
            inflight.set_write_through(!self.wce);
        }
        self.settle_cache();
        if !self.wce {
            self.disk.blocks.flush().map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    fn set_gpu_socket(&mut self, _: GpuBackend) -> Result<()> {
        Err(NOT_SPOKEN)
    }

    fn get_shared_object(&mut self, _: VhostUserSharedMsg) -> Result<File> {
        Err(NOT_SPOKEN)
    }

    fn get_inflight_fd(&mut self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        if usize::from(wanted.num_queues) > self.queues.len() {
            return Err(Error::InvalidParam);
        }
        let (queues, size) = (wanted.num_queues, wanted.queue_size);
        Inflight::create(queues, size, !self.wce).map_err(inflight_refused)
    }

    fn set_inflight_fd(&mut self, numbers: &VhostUserInflight, file: File) -> Result<()> {
        let area = Inflight::adopt(numbers, file).map_err(inflight_refused)?;
        self.stop();
        self.wce = !area.is_write_through();
        self.settle_cache();
        self.inflight = Some(Arc::new(area));
        self.start_all()
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(REGIONS_MAX as u64)
    }

    fn add_mem_region(
        &mut self,
        numbers: &VhostUserSingleMemoryRegion,
        file: File,
        _: Option<bool>,
    ) -> Result<Option<u64>> {
        self.change_memory(|regions| regions.add(numbers, file))?;
        Ok(None)
    }

    fn remove_mem_region(&mut self, numbers: &VhostUserSingleMemoryRegion) -> Result<()> {
        self.change_memory(|regions| regions.remove(numbers))
    }

    fn set_device_state_fd(
        &mut self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        Err(NOT_SPOKEN)
    }

    fn check_device_state(&mut self) -> Result<()> {
        Err(NOT_SPOKEN)
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        Err(NOT_SPOKEN)
    }

    fn set_log_base(&mut self, _: &VhostUserLog, _: File) -> Result<()> {
        Err(NOT_SPOKEN)
    }
}
