//! The memory that a guest shares.
//!
//! Promise: only files that have all the bytes that they are said to have are mapped, at whole
//! pages, and no two regions overlap.
//! Never: reads or writes it.

use std::fs::File;
use std::sync::Arc;

use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::{Address, FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

/// Regions of one guest. A frontend that adds them one by one is told this limit.
pub(crate) const REGIONS_MAX: usize = 64;

/// Rings are aligned to addresses of the guest, so those have to be aligned in the process too.
const PAGE_BYTES: u64 = 4096;

/// What is wrong with a region.
#[derive(Debug)]
pub(crate) enum MemoryFault {
    /// Its numbers: no whole pages, behind the end of its file, over another one, or too many.
    Numbers,
    /// The system does not map it.
    Map,
    /// There is no such region.
    Missing,
}

/// All regions of a guest.
#[derive(Clone, Default)]
pub(crate) struct Regions {
    regions: Vec<Region>,
}

#[derive(Clone)]
struct Region {
    /// In the frontend's own addresses, which its messages about rings use.
    frontend_start: u64,
    numbers: [u64; 3],
    mapped: Arc<GuestRegionMmap>,
}

impl Region {
    fn new(numbers: &VhostUserMemoryRegion, file: File) -> Result<Region, MemoryFault> {
        let VhostUserMemoryRegion { guest_phys_addr, memory_size, user_addr, mmap_offset } =
            *numbers;
        let end = mmap_offset.checked_add(memory_size).ok_or(MemoryFault::Numbers)?;
        let length = file.metadata().map_err(|_| MemoryFault::Map)?.len();
        user_addr.checked_add(memory_size).ok_or(MemoryFault::Numbers)?;
        if guest_phys_addr % PAGE_BYTES != 0 || end > length || memory_size == 0 {
            return Err(MemoryFault::Numbers);
        }
        let size = usize::try_from(memory_size).map_err(|_| MemoryFault::Numbers)?;
        let mapped = MmapRegion::from_file(FileOffset::new(file, mmap_offset), size);
        let mapped = mapped.map_err(|_| MemoryFault::Map)?;
        let mapped = GuestRegionMmap::new(mapped, GuestAddress(guest_phys_addr));
        Ok(Region {
            frontend_start: user_addr,
            numbers: [guest_phys_addr, memory_size, user_addr],
            mapped: Arc::new(mapped.ok_or(MemoryFault::Numbers)?),
        })
    }
}

impl Regions {
    /// Adds a region.
    pub(crate) fn add(
        &mut self,
        numbers: &VhostUserMemoryRegion,
        file: File,
    ) -> Result<(), MemoryFault> {
        if self.regions.len() >= REGIONS_MAX {
            return Err(MemoryFault::Numbers);
        }
        self.regions.push(Region::new(numbers, file)?);
        self.regions.sort_by_key(|region| region.numbers[0]);
        Ok(())
    }

    /// Removes a region that has these numbers.
    pub(crate) fn remove(&mut self, numbers: &VhostUserMemoryRegion) -> Result<(), MemoryFault> {
        let wanted = [numbers.guest_phys_addr, numbers.memory_size, numbers.user_addr];
        let found = self.regions.iter().position(|region| region.numbers == wanted);
        self.regions.remove(found.ok_or(MemoryFault::Missing)?);
        Ok(())
    }

    /// The guest's memory; none, if no region is there.
    pub(crate) fn map(&self) -> Result<Option<Arc<GuestMemoryMmap>>, MemoryFault> {
        if self.regions.is_empty() {
            return Ok(None);
        }
        let regions = self.regions.iter().map(|region| region.mapped.clone()).collect();
        let memory = GuestMemoryMmap::from_arc_regions(regions);
        Ok(Some(Arc::new(memory.map_err(|_| MemoryFault::Numbers)?)))
    }

    /// The guest's address of what the frontend has at `address`.
    pub(crate) fn translate(&self, address: u64) -> Option<GuestAddress> {
        self.regions.iter().find_map(|region| {
            let [guest_start, bytes, _] = region.numbers;
            let offset = address.checked_sub(region.frontend_start)?;
            (offset < bytes).then(|| GuestAddress(guest_start).unchecked_add(offset))
        })
    }
}
