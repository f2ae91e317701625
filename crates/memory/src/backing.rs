//! Claims the memory of a region: opens, locks, sizes and maps what a [`Medium`] names.
//!
//! Promise: at most one process on the machine holds the [`Backing`] of a file or device; its
//! death, however it dies, ends the claim at once.
//! Never: looks at more than whether the first two pages are blank, or uses a file that another
//! user owns, can write, or could have put there.
//!
//! The witness of death is the kernel: a claim is an exclusive flock(2) on the open file, which
//! the kernel drops when the last descriptor of the process is gone. There is no table of process
//! numbers to evict the dead from, and no number that a stranger could inherit.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use holdfast_io::{Opener, named, private};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, fstatfs};

use crate::control::{CONTROL_BYTES, PAGE_BYTES};
use crate::device;
use crate::error::{AttachError, CreateError};
use crate::medium::Medium;
use crate::name;
use crate::raw::Mapping;
use crate::superblock::MAGIC;

/// The bytes that say whether there is a region: superblock and control page.
pub(crate) const HEAD_BYTES: u64 = PAGE_BYTES + CONTROL_BYTES;

/// Regions up to this size get their pages before they are touched: first touches would land in
/// somebody's commit. Zeroing this much takes well under a second.
pub(crate) const POPULATE_BYTES_MAX: u64 = 512 << 20;

/// Bytes that are copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// The type number of hugetlbfs in statfs(2).
const HUGETLBFS_TYPE: u64 = 0x9584_58f6;

/// Type numbers of file systems that a restart leaves nothing of: hugetlbfs, tmpfs, ramfs.
const ENDS_WITH_SYSTEM: [u64; 3] = [HUGETLBFS_TYPE, 0x0102_1994, 0x8584_58f6];

/// Claimed memory.
#[derive(Debug)]
pub(crate) struct Backing {
    pub(crate) mapping: Mapping,
    /// None for memory that no other process can reach.
    pub(crate) claim: Option<Claim>,
}

impl Backing {
    /// Whether an older program, which noted no run of the system here, may have left it in this
    /// one: a ring on a disk, or anything where a restart leaves nothing.
    pub(crate) fn may_be_unnoted(&self, medium: &Medium, is_ring: bool) -> bool {
        match medium {
            Medium::Shm { .. } | Medium::HugeTlb { .. } => {
                let system = self.claim.as_ref().and_then(|claim| fstatfs(&claim.0).ok());
                system.is_some_and(|it| ENDS_WITH_SYSTEM.contains(&(it.f_type as u64)))
            }
            Medium::Private | Medium::Pmem { .. } | Medium::File { .. } => is_ring,
        }
    }
}

/// The right to serve what the file holds, until it is dropped or its process is gone.
#[derive(Debug)]
pub(crate) struct Claim(File, Opener);

impl Claim {
    fn of(locked: File) -> Claim {
        Claim(locked, Opener::this_process())
    }

    /// Removes the region that is claimed: unlinks its file, blanks the head of its device. False
    /// if no name at `path` leads to the file any more; whatever else is there stays.
    pub(crate) fn remove(&self, medium: &Medium, path: &Path) -> io::Result<bool> {
        match self.0.metadata()?.is_file() {
            true => remove_name(path, &self.0),
            false => blank(medium, self).map(|()| true),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Closing is not enough: a child being started by another thread holds a copy of the
        // descriptor until it runs its own program. Should this fail, the close still follows.
        // A child that was forked to stay closes its copy, and leaves the lock to its parent.
        if self.1.is_here() {
            let _ = flock(&self.0, FlockOperation::Unlock);
        }
    }
}

/// Claims memory for a new region of `bytes`: blank, its pages allocated unless it is `Private`.
pub(crate) fn create(medium: &Medium, bytes: u64) -> Result<Backing, CreateError> {
    let backing = match medium.path() {
        None => {
            let mapping = Mapping::anonymous(bytes as usize).map_err(making("map memory"))?;
            Backing { mapping, claim: None }
        }
        Some(path) => create_at(medium, path, bytes)?,
    };
    if bytes <= POPULATE_BYTES_MAX && matches!(medium, Medium::Shm { .. } | Medium::Pmem { .. }) {
        backing.mapping.populate(0, bytes);
    }
    Ok(backing)
}

/// Claims the memory of a region that exists.
pub(crate) fn attach(medium: &Medium) -> Result<Backing, AttachError> {
    let path = medium.path().ok_or(AttachError::Missing)?;
    let file = open_existing(path, true)?;
    let length = region_length(&file)?;
    let mapping = map_shared(medium, &file, length).map_err(attaching("map the region"))?;
    match claim(file, path).map_err(attaching("lock the region's file"))? {
        Some(claim) => Ok(Backing { mapping, claim: Some(claim) }),
        None => {
            let pid = mapping.control().notes.0.server_pid.load(Ordering::Relaxed);
            Err(AttachError::InUse { pid })
        }
    }
}

/// Maps the memory of a region for reading, whoever serves it.
pub(crate) fn observe(medium: &Medium) -> Result<Mapping, AttachError> {
    let path = medium.path().ok_or(AttachError::Missing)?;
    let file = open_existing(path, false)?;
    let length = region_length(&file)?;
    Mapping::read_only(file.as_fd(), length as usize).map_err(attaching("map the region"))
}

/// Whether the memory at `medium` outlives the system, as whoever serves it would find.
pub(crate) fn outlives_os(medium: &Medium) -> Result<bool, AttachError> {
    let Some(path) = medium.path().filter(|_| medium.survives().os) else { return Ok(false) };
    let file = open_existing(path, true)?;
    let length = region_length(&file)?;
    let mapping = map_shared(medium, &file, length).map_err(attaching("map the region"))?;
    Ok(mapping.persists())
}

/// Gives the file of the region at `medium` another name beside it; a device has none to give.
pub(crate) fn put_aside(medium: &Medium, name: &OsStr) -> io::Result<PathBuf> {
    let path = medium.path().ok_or(io::ErrorKind::NotFound)?;
    let claim = claim_unserved(path)?;
    if !claim.0.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "it is a device, and has one name"));
    }
    let aside = path.with_file_name(name);
    std::fs::rename(path, &aside)?;
    Ok(aside)
}

fn claim_unserved(path: &Path) -> io::Result<Claim> {
    let busy = || io::Error::new(io::ErrorKind::ResourceBusy, "a process serves the region");
    claim(name::open(path)?, path)?.ok_or_else(busy)
}

/// Removes the region at `medium`: unlinks a file, blanks the head of a device.
pub(crate) fn remove(medium: &Medium) -> io::Result<()> {
    let Some(path) = medium.path() else {
        return Ok(());
    };
    let claim = claim_unserved(path)?;
    claim.remove(medium, path).map(drop)
}

fn blank(medium: &Medium, claim: &Claim) -> io::Result<()> {
    let head = [0; HEAD_BYTES as usize];
    if device::is_memory(&claim.0)? {
        let mapping = map_shared(medium, &claim.0, device::length(&claim.0)?)?;
        mapping.copy_in(0, &head);
        mapping.persist(0, HEAD_BYTES);
        return Ok(());
    }
    claim.0.write_all_at(&head, 0)?;
    claim.0.sync_all()
}

/// Unlinks this name if it is this file's.
fn remove_name(path: &Path, file: &File) -> io::Result<bool> {
    match is_name_of(path, file)? {
        true => private::remove(path).map(|()| true),
        false => Ok(false),
    }
}

fn is_name_of(path: &Path, file: &File) -> io::Result<bool> {
    let (ours, there) = (file.metadata()?, std::fs::symlink_metadata(path));
    Ok(there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

fn create_at(medium: &Medium, path: &Path, bytes: u64) -> Result<Backing, CreateError> {
    let (file, made) = open_or_make(path).map_err(|error| opening(path, error))?;
    let claimed = claim(file, path).map_err(making("lock the region's file"))?;
    let claim = claimed.ok_or_else(|| CreateError::Exists { path: path.to_owned() })?;
    match fill(medium, path, &claim.0, bytes) {
        Ok(mapping) => Ok(Backing { mapping, claim: Some(claim) }),
        Err(error) => {
            if made {
                // The error that matters is the first one; an empty file is no region anyway.
                let _ = remove_name(path, &claim.0);
            }
            Err(error)
        }
    }
}

/// Makes a file at `medium` with all that `held` has, whose name is gone and which nobody serves.
pub(crate) fn put_back(medium: &Medium, held: &File) -> io::Result<File> {
    let path = medium.path().ok_or(io::ErrorKind::NotFound)?;
    let busy = || io::Error::new(io::ErrorKind::ResourceBusy, "a process serves the region");
    flock(held, FlockOperation::NonBlockingLockExclusive).map_err(|_| busy())?;
    // Whoever else holds it shares nothing with this claim but the file.
    let _claim = Claim::of(held.try_clone()?);
    let (file, made) = open_or_make(path)?;
    if !made {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let claimed = claim(file, path)?.ok_or_else(busy)?;
    let copied = copy(medium, held, &claimed.0).and_then(|()| claimed.0.try_clone());
    copied.inspect_err(|_| {
        // The error that matters is the first one; an empty file is no region anyway.
        let _ = remove_name(path, &claimed.0);
    })
}

/// Copies a region into an empty file. The head comes last: before it, there is no region.
fn copy(medium: &Medium, from: &File, to: &File) -> io::Result<()> {
    let length = from.metadata()?.len();
    fallocate(to, FallocateFlags::empty(), 0, length)?;
    let mapping = map_shared(medium, to, length)?;
    let mut bytes = vec![0; COPY_BYTES];
    let mut at = length;
    while at > 0 {
        let begin = (at - 1) / COPY_BYTES as u64 * COPY_BYTES as u64;
        let part = &mut bytes[..(at - begin) as usize];
        from.read_exact_at(part, begin)?;
        mapping.copy_in(begin, part);
        mapping.persist(begin, part.len() as u64);
        at = begin;
    }
    Ok(())
}

/// Sizes and maps a claimed file or device, if it is free to be used.
fn fill(medium: &Medium, path: &Path, file: &File, bytes: u64) -> Result<Mapping, CreateError> {
    let metadata = file.metadata().map_err(making("inspect the region's file"))?;
    let length = if metadata.is_file() {
        let length = bytes.next_multiple_of(allocation_unit(medium, path, file)?);
        // An empty file is ours; a blank one of the right size is what a maker that died left.
        if metadata.len() != 0 {
            free_to_use(file, path)?;
            if metadata.len() != length {
                return Err(CreateError::Occupied { path: path.to_owned() });
            }
        }
        // Allocated, not sparse: a page that cannot be had must fail here, not as a fault later.
        fallocate(file, FallocateFlags::empty(), 0, length)
            .map_err(|error| making("allocate the region's file")(error.into()))?;
        length
    } else {
        free_to_use(file, path)?;
        device::length(file).map_err(making("measure the device"))?
    };
    if length < bytes {
        return Err(CreateError::TooSmall { have: length, need: bytes });
    }
    map_shared(medium, file, length).map_err(making("map the region"))
}

/// Refuses memory that holds something, a region or not.
fn free_to_use(file: &File, path: &Path) -> Result<(), CreateError> {
    let head = device::head(file, HEAD_BYTES as usize).map_err(making("read the region's file"))?;
    if is_blank(&head) {
        Ok(())
    } else if head.starts_with(&MAGIC) {
        Err(CreateError::Exists { path: path.to_owned() })
    } else {
        Err(CreateError::Occupied { path: path.to_owned() })
    }
}

/// Opens the file for a new region, and says whether it was made by this call.
fn open_or_make(path: &Path) -> io::Result<(File, bool)> {
    if path.parent() == Some(&private::memory_folder()) {
        private::make_memory_folder()?;
    }
    match name::open(path) {
        // A device that is not there must not become a file under /dev.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_device_path(path) => {
            Ok((private::create(path)?, true))
        }
        opened => Ok((opened?, false)),
    }
}

fn is_device_path(path: &Path) -> bool {
    path.parent() == Some(Path::new("/dev"))
}

fn open_existing(path: &Path, write: bool) -> Result<File, AttachError> {
    name::check(path)?;
    let opened = match write {
        // What is in it is for nobody else to read, nor for others to lock.
        true => private::open_secret(path).map(|(file, _was_lax)| file),
        false => private::open(path, false),
    };
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => AttachError::Missing,
        _ if private::is_refusal(&error) => AttachError::Exposed { why: error.to_string() },
        _ => attaching("open the region's file")(named("opening", path, error)),
    })
}

/// The length of a file or device that may hold a region. One with a blank head holds none.
fn region_length(file: &File) -> Result<u64, AttachError> {
    let head =
        device::head(file, HEAD_BYTES as usize).map_err(attaching("read the region's file"))?;
    if is_blank(&head) {
        return Err(AttachError::Missing);
    }
    let length = device::length(file).map_err(attaching("measure the region's file"))?;
    if length < HEAD_BYTES {
        return Err(AttachError::Damaged { field: "length", offset: length });
    }
    Ok(length)
}

fn is_blank(head: &[u8]) -> bool {
    head.iter().all(|byte| *byte == 0)
}

/// Takes the claim on the file opened at `path`; none if another process has it, or removed the
/// file between the opening and the claim.
fn claim(file: File, path: &Path) -> io::Result<Option<Claim>> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let claim = Claim::of(file);
    Ok(is_name_of(path, &claim.0)?.then_some(claim))
}

/// Maps a file for serving: a DAX file such that stores reach the memory itself, if it can.
fn map_shared(medium: &Medium, file: &File, length: u64) -> io::Result<Mapping> {
    if matches!(medium, Medium::Pmem { .. })
        && let Ok(mapping) = Mapping::synchronous(file.as_fd(), length as usize)
    {
        return Ok(mapping);
    }
    Mapping::shared(file.as_fd(), length as usize)
}

/// What the file's length must be a multiple of: a page, or a huge page.
fn allocation_unit(medium: &Medium, path: &Path, file: &File) -> Result<u64, CreateError> {
    if !matches!(medium, Medium::HugeTlb { .. }) {
        return Ok(PAGE_BYTES);
    }
    let system = fstatfs(file);
    let system = system.map_err(|error| making("inspect the file system")(error.into()))?;
    if system.f_type as u64 != HUGETLBFS_TYPE {
        return Err(CreateError::NotHugeTlb { path: path.to_owned() });
    }
    Ok(system.f_bsize as u64)
}

fn opening(path: &Path, error: io::Error) -> CreateError {
    match private::is_refusal(&error) {
        true => CreateError::Exposed { why: error.to_string() },
        false => making("open the region's file")(named("opening", path, error)),
    }
}

fn making(doing: &'static str) -> impl Fn(io::Error) -> CreateError {
    move |source| CreateError::Io { doing, source }
}

fn attaching(doing: &'static str) -> impl Fn(io::Error) -> AttachError {
    move |source| AttachError::Io { doing, source }
}
