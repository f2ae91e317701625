//! One request's pieces of guest memory.
//!
//! Promise: a chain that was walked lies wholly in the guest's memory; whatever the descriptors
//! hold, a walk ends. What a guest changes afterwards changes the data only, never where it is.
//! Never: knows what the bytes mean.

use virtio_queue::desc::split::Descriptor;
use vm_memory::{Address, GuestAddress};

use super::memory::{Guest, Lost};

/// Entries of an indirect table, at most.
const INDIRECT_MAX: u32 = 1024;

const DESCRIPTOR_BYTES: u32 = size_of::<Descriptor>() as u32;

/// What is wrong with a chain. It has no place for an answer, so its queue cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChainFault {
    /// A descriptor names one that is not in the table.
    #[error("a descriptor outside its table")]
    Index,
    /// The chain is longer than its table: it bites its tail.
    #[error("a chain of descriptors without an end")]
    Endless,
    /// Memory that the guest does not have, or not any more.
    #[error("an address outside the guest's memory, or memory that is gone")]
    Memory,
    /// A table inside a table, before another descriptor, or of a wrong length.
    #[error("a wrong indirect table")]
    Table,
    /// Memory to be read behind memory to be written.
    #[error("descriptors in a wrong order")]
    Order,
}

/// A table of descriptors.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) start: GuestAddress,
    pub(crate) entries: u32,
}

/// Pieces of memory, one behind the other.
#[derive(Default)]
pub(crate) struct Pieces {
    pieces: Vec<(GuestAddress, u32)>,
    bytes: u64,
}

/// A request's memory.
#[derive(Default)]
pub(crate) struct Chain {
    /// What the guest wrote.
    pub(crate) from_guest: Pieces,
    /// What it waits for.
    pub(crate) to_guest: Pieces,
}

impl Chain {
    /// Walks from the descriptor `head`, in place of what was there.
    pub(crate) fn walk(
        &mut self,
        memory: &Guest,
        mut table: Table,
        head: u16,
    ) -> Result<(), ChainFault> {
        self.from_guest.clear();
        self.to_guest.clear();
        let (mut next, mut left, mut is_indirect) = (head, table.entries, false);
        loop {
            let descriptor = descriptor(memory, table, next)?;
            left = left.checked_sub(1).ok_or(ChainFault::Endless)?;
            if descriptor.refers_to_indirect_table() {
                if is_indirect {
                    return Err(ChainFault::Table);
                }
                table = indirect(&descriptor)?;
                (next, left, is_indirect) = (0, table.entries, true);
                continue;
            }
            self.add(memory, &descriptor)?;
            if !descriptor.has_next() {
                return Ok(());
            }
            next = descriptor.next();
        }
    }

    fn add(&mut self, memory: &Guest, piece: &Descriptor) -> Result<(), ChainFault> {
        let (address, bytes) = (piece.addr(), piece.len());
        if !memory.has(address, bytes as usize) {
            return Err(ChainFault::Memory);
        }
        if piece.is_write_only() {
            self.to_guest.add(address, bytes);
        } else if self.to_guest.pieces.is_empty() {
            self.from_guest.add(address, bytes);
        } else {
            return Err(ChainFault::Order);
        }
        Ok(())
    }
}

fn descriptor(memory: &Guest, table: Table, index: u16) -> Result<Descriptor, ChainFault> {
    if u32::from(index) >= table.entries {
        return Err(ChainFault::Index);
    }
    let offset = u64::from(index) * u64::from(DESCRIPTOR_BYTES);
    let address = table.start.checked_add(offset).ok_or(ChainFault::Memory)?;
    memory.load(address).map_err(|Lost| ChainFault::Memory)
}

fn indirect(descriptor: &Descriptor) -> Result<Table, ChainFault> {
    let entries = descriptor.len() / DESCRIPTOR_BYTES;
    let is_whole = descriptor.len() == entries * DESCRIPTOR_BYTES;
    if !is_whole || entries > INDIRECT_MAX || descriptor.has_next() {
        return Err(ChainFault::Table);
    }
    Ok(Table { start: descriptor.addr(), entries })
}

impl Pieces {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn clear(&mut self) {
        self.pieces.clear();
        self.bytes = 0;
    }

    fn add(&mut self, address: GuestAddress, bytes: u32) {
        self.pieces.push((address, bytes));
        self.bytes += u64::from(bytes);
    }

    /// Copies from guest memory, from the byte `offset` of it on.
    pub(crate) fn read(&self, memory: &Guest, offset: u64, into: &mut [u8]) -> Result<(), Lost> {
        let mut filled = 0;
        self.each(offset, into.len(), |address, bytes| {
            let part = &mut into[filled..filled + bytes];
            filled += bytes;
            memory.read(part, address)
        })
    }

    /// Copies to guest memory, from the byte `offset` of it on.
    pub(crate) fn write(&self, memory: &Guest, offset: u64, from: &[u8]) -> Result<(), Lost> {
        let mut used = 0;
        self.each(offset, from.len(), |address, bytes| {
            let part = &from[used..used + bytes];
            used += bytes;
            memory.write(part, address)
        })
    }

    /// Where the byte `offset` is.
    pub(crate) fn address(&self, offset: u64) -> Option<GuestAddress> {
        let mut found = None;
        let look = |address, _| {
            found = Some(address);
            Ok(())
        };
        self.each(offset, 1, look).ok()?;
        found
    }

    /// Visits `bytes` of memory from `offset` on, which are all there.
    fn each(
        &self,
        offset: u64,
        bytes: usize,
        mut visit: impl FnMut(GuestAddress, usize) -> Result<(), Lost>,
    ) -> Result<(), Lost> {
        assert!(offset + bytes as u64 <= self.bytes, "more than the guest gave");
        let (mut skip, mut left) = (offset, bytes);
        for &(start, length) in &self.pieces {
            let here = u64::from(length).saturating_sub(skip).min(left as u64) as usize;
            if here > 0 {
                visit(start.unchecked_add(skip), here)?;
            }
            left -= here;
            skip = skip.saturating_sub(u64::from(length));
        }
        Ok(())
    }
}
