//! The memory that a guest shares.
//!
//! Promise: only files that have all the bytes that they are said to have are mapped, at whole
//! pages, and no two regions overlap. A guest or hypervisor that takes memory away which is mapped
//! here ends its own connection: every access says whether what it touched was there.
//! Never: gives out what was read, or counts as written what was written, once memory is lost; maps
//! a file whose pages a program or another machine brings.

use std::fs::File;
use std::sync::Arc;

use rustix::fs::fstatfs;
use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::{
    Address, ByteValued, Bytes, FileOffset, GuestAddress, GuestMemory, GuestMemoryMmap,
    GuestRegionMmap, MmapRegion, Permissions,
};

use super::raw::Guard;

/// Regions of one guest. A frontend that adds them one by one is told this limit.
pub(crate) const REGIONS_MAX: usize = 64;

/// Rings are aligned to addresses of the guest, so those have to be aligned in the process too.
const PAGE_BYTES: u64 = 4096;

/// File systems that may withhold a page as long as they like: FUSE, NFS, CIFS, SMB2, 9P, Ceph.
const OTHERS_BRING_PAGES: [u32; 6] =
    [0x6573_5546, 0x6969, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x00c3_6400];

/// What is wrong with a region.
#[derive(Debug)]
pub(crate) enum MemoryFault {
    /// Its numbers: no whole pages, behind the end of its file, over another one, or too many.
    Numbers,
    /// The system does not map it.
    Map,
    /// Its pages come from a program or another machine, which could keep a queue waiting.
    Withheld,
    /// There is no such region.
    Missing,
}

/// Memory that is not the guest's, or is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost;

/// The regions of a guest, as one memory.
pub(crate) struct Guest {
    guards: Vec<Arc<Guard>>,
    memory: GuestMemoryMmap,
}

impl Guest {
    /// Memory that nobody takes away.
    #[cfg(test)]
    pub(crate) fn unguarded(memory: GuestMemoryMmap) -> Guest {
        Guest { guards: Vec::new(), memory }
    }

    /// Whether all of a range is the guest's.
    pub(crate) fn has(&self, at: GuestAddress, bytes: usize) -> bool {
        self.memory.check_range(at, bytes, Permissions::ReadWrite)
    }

    /// Copies bytes out.
    pub(crate) fn read(&self, into: &mut [u8], at: GuestAddress) -> Result<(), Lost> {
        self.memory.read_slice(into, at).map_err(|_| Lost)?;
        self.check()
    }

    /// Copies bytes in.
    pub(crate) fn write(&self, from: &[u8], at: GuestAddress) -> Result<(), Lost> {
        self.memory.write_slice(from, at).map_err(|_| Lost)?;
        self.check()
    }

    /// A copy of a value.
    pub(crate) fn load<T: ByteValued>(&self, at: GuestAddress) -> Result<T, Lost> {
        let value = self.memory.read_obj(at).map_err(|_| Lost)?;
        self.check().map(|()| value)
    }

    /// For what reaches the rings by itself: ask [`Self::check`] behind it.
    pub(crate) fn unchecked(&self) -> &GuestMemoryMmap {
        &self.memory
    }

    /// Whether everything that was touched so far was there.
    pub(crate) fn check(&self) -> Result<(), Lost> {
        let is_lost = self.guards.iter().any(|guard| guard.is_lost());
        if is_lost { Err(Lost) } else { Ok(()) }
    }
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
    guard: Arc<Guard>,
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
        let (guard, mapped) = map(file, mmap_offset, size)?;
        let mapped = GuestRegionMmap::with_arc(mapped, GuestAddress(guest_phys_addr));
        Ok(Region {
            frontend_start: user_addr,
            numbers: [guest_phys_addr, memory_size, user_addr],
            guard: Arc::new(guard),
            mapped: Arc::new(mapped.ok_or(MemoryFault::Numbers)?),
        })
    }
}

/// Maps a part of a file that somebody else has, such that it may be lost.
pub(crate) fn map(
    file: File,
    offset: u64,
    bytes: usize,
) -> Result<(Guard, Arc<MmapRegion>), MemoryFault> {
    let system = fstatfs(&file).map_err(|_| MemoryFault::Map)?.f_type;
    if OTHERS_BRING_PAGES.contains(&(system as u32)) {
        return Err(MemoryFault::Withheld);
    }
    let mapped = MmapRegion::from_file(FileOffset::new(file, offset), bytes);
    let mapped = Arc::new(mapped.map_err(|_| MemoryFault::Map)?);
    let guard = Guard::over(mapped.clone()).ok_or(MemoryFault::Map)?;
    Ok((guard, mapped))
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
    pub(crate) fn map(&self) -> Result<Option<Arc<Guest>>, MemoryFault> {
        if self.regions.is_empty() {
            return Ok(None);
        }
        let guards = self.regions.iter().map(|region| region.guard.clone()).collect();
        let regions = self.regions.iter().map(|region| region.mapped.clone()).collect();
        let memory = GuestMemoryMmap::from_arc_regions(regions);
        let memory = memory.map_err(|_| MemoryFault::Numbers)?;
        Ok(Some(Arc::new(Guest { guards, memory })))
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
