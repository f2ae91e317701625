//! The disk in durable memory, as its users see it.
//!
//! Promise: it is made, attached after any death, read and written; a disk of another kind, version
//! or size, and a damaged one, are told apart and left as they are.
//! Never: more durable than its memory: what survives is what [`Vdisk::survives`] says.

use std::io;
use std::iter::once;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Blocks, BlocksError, Extent, Receiving, SendError, Sending};
use holdfast_memory::{Area, AreaSpec, AttachError, Medium, MediumSurvival, Piece};

use crate::disk::{Disk, ZEROS};
use crate::error::{AttachVdiskError, CreateVdiskError};
use crate::header::{BLOCK_BYTES, HeaderFault};
use crate::layout::{BLOCKS_MAX, Layout, VERSION, WRITE_BYTES_MAX};
use crate::lend::Place;
use crate::memory::HELD;
use crate::receive::Incoming;

/// What a region that holds a disk says that it holds.
const CONTENT: [u8; 8] = *b"HFVDISK\0";

/// Below this, a copy of several reads that are sent together costs less than a call for each.
const SEND_BYTES_MIN: usize = 32 << 10;

/// Below this, a copy of several writes that are received together costs less than a call for each.
const RECEIVE_BYTES_MIN: usize = 32 << 10;

/// What a new disk is to be.
#[derive(Clone, Copy, Debug)]
pub struct VdiskSpec {
    /// Its bytes: a multiple of 4096. The region has 0.2 % more, and 3 MiB.
    pub size_bytes: u64,
    /// 16 bytes that no other region has.
    pub identity: [u8; 16],
}

/// A disk in durable memory. Used by many threads of one process at a time.
///
/// An acknowledged change is as durable as the memory at once, so [`Blocks::flush`] has nothing to
/// do: in shared memory it outlives the process, in persistent memory the operating system too,
/// because each change is written back from the processor's caches before it is acknowledged.
///
/// Dropping it ends the claim on the region; the disk stays (unless the medium is `Private`).
#[derive(Debug)]
pub struct Vdisk {
    disk: Disk<Area>,
}

impl Vdisk {
    /// The region's counter ([`holdfast_memory::Observed::word`]) of blocks that are not empty.
    pub const BLOCKS_HELD: usize = HELD;

    /// Makes a disk of zeros on `medium`. All its memory is allocated here.
    ///
    /// # Errors
    /// See [`CreateVdiskError`].
    pub fn create(medium: &Medium, spec: &VdiskSpec) -> Result<Vdisk, CreateVdiskError> {
        let VdiskSpec { size_bytes, identity } = *spec;
        let blocks = size_bytes / BLOCK_BYTES as u64;
        let is_whole = size_bytes.is_multiple_of(BLOCK_BYTES as u64);
        if blocks == 0 || blocks > BLOCKS_MAX || !is_whole {
            return Err(CreateVdiskError::BadSize { size_bytes });
        }
        let (layout, seed) = (Layout::of(blocks), crc32c(0, &identity));
        let spec = AreaSpec { content: CONTENT, identity, bytes: layout.area_bytes() };
        let area = Area::create(medium, &spec, |area| layout.format(area, seed));
        let disk = Disk::open(area.map_err(CreateVdiskError::Region)?, layout, seed);
        Ok(Vdisk { disk: disk.expect("a map without a cell is right") })
    }

    /// Takes up the disk on `medium` after its last user ended or died; `size_bytes` is what it is
    /// expected to have. Looks at the whole map: 2 MiB a GiB of disk.
    ///
    /// # Errors
    /// See [`AttachVdiskError`]. The disk is as it was.
    pub fn attach(medium: &Medium, size_bytes: u64) -> Result<Vdisk, AttachVdiskError> {
        let area = Area::attach(medium, CONTENT).map_err(|error| match error {
            AttachError::OtherContent { found } => AttachVdiskError::NoDisk { found },
            other => AttachVdiskError::Region(other),
        })?;
        let seed = crc32c(0, &area.identity());
        let layout = Layout::found(&area, seed, area.bytes()).map_err(|fault| match fault {
            HeaderFault::OtherVersion { found } => {
                AttachVdiskError::OtherVersion { found, known: VERSION }
            }
            HeaderFault::Damaged => AttachVdiskError::DamagedHeader,
        })?;
        if layout.size_bytes() != size_bytes {
            let found = layout.size_bytes();
            return Err(AttachVdiskError::OtherSize { found, asked: size_bytes });
        }
        let disk = Disk::open(area, layout, seed).map_err(AttachVdiskError::Damaged)?;
        Ok(Vdisk { disk })
    }

    /// A shared word of the region, for whoever serves the disk to count in. 0 in a new disk.
    /// [`Vdisk::BLOCKS_HELD`] is the disk's own.
    ///
    /// # Panics
    /// If `index` is not below [`holdfast_memory::WORDS`].
    #[must_use]
    pub fn counter(&self, index: usize) -> &AtomicU64 {
        self.disk.memory().counter(index)
    }

    /// Runs `job` while no byte of the disk changes: whoever writes waits until it is done. It may
    /// read the disk; it would wait for itself for ever if it wrote there.
    pub fn while_still<T>(&self, job: impl FnOnce() -> T) -> T {
        self.disk.while_still(job)
    }

    /// 16 bytes that no other region has.
    #[must_use]
    pub fn identity(&self) -> [u8; 16] {
        self.disk.memory().identity()
    }

    /// How often the disk was attached, this time and its making included.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.disk.memory().generation()
    }

    /// What acknowledged changes outlive, as found, not as configured.
    #[must_use]
    pub fn survives(&self) -> MediumSurvival {
        self.disk.memory().survives()
    }
}

impl Blocks for Vdisk {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        self.disk.read(into, offset)
    }

    fn send(&self, socket: BorrowedFd<'_>, what: &Sending<'_>) -> Result<usize, SendError> {
        let lent = self.disk.lend(what.offset, what.bytes, |places| {
            self.disk.memory().send(socket, &pieces(what, places))
        });
        match lent {
            Ok(Some(sent)) => sent.map_err(SendError::Socket),
            // What is damaged a read will say.
            Ok(None) | Err(_) => Err(SendError::Copy),
        }
    }

    fn send_bytes_min(&self) -> usize {
        SEND_BYTES_MIN
    }

    fn receive(&self, offset: u64, bytes: usize) -> Option<Box<dyn Receiving + '_>> {
        self.disk.incoming(offset, bytes).map(|incoming| Box::new(incoming) as Box<_>)
    }

    fn receive_bytes_min(&self) -> usize {
        RECEIVE_BYTES_MIN
    }

    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        self.disk.write(from, offset)
    }

    /// Every block of a disk always has a cell to go to, so nothing needs to be reserved.
    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.disk.zero(offset, bytes)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.disk.zero(offset, bytes)
    }

    fn extent_at(&self, offset: u64) -> Result<Extent, BlocksError> {
        self.disk.extent_at(offset)
    }

    /// Nothing is left to do: an acknowledged change is as durable as it becomes.
    fn flush(&self) -> Result<(), BlocksError> {
        Ok(())
    }

    fn atomic_bytes_max(&self) -> usize {
        WRITE_BYTES_MAX
    }
}

impl Receiving for Incoming<'_, Area> {
    fn left_bytes(&self) -> usize {
        self.left_bytes()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.put(bytes);
    }

    fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let bytes = self.memory().receive(socket, &self.left())?;
        self.came(bytes);
        Ok(bytes)
    }

    fn take_back(&self) -> Vec<u8> {
        self.filled()
    }

    fn commit(self: Box<Self>) -> Result<(), BlocksError> {
        (*self).commit()
    }
}

/// What is to be sent, as far as it lies in `places`.
fn pieces<'b>(what: &Sending<'b>, places: &[Place]) -> Vec<Piece<'b>> {
    let lent_bytes: usize = places.iter().map(|place| place.bytes).sum();
    let tail = if lent_bytes == what.bytes { what.tail } else { &[] };
    let piece = |place: &Place| match place.at {
        Some(at) => Piece::Held { at, bytes: place.bytes },
        None => Piece::Other(&ZEROS[..place.bytes]),
    };
    let head = once(Piece::Other(what.head));
    head.chain(places.iter().map(piece)).chain(once(Piece::Other(tail))).collect()
}
