//! Requests against a file that has the data, and a disk in memory.

use super::super::wire::request;
use super::*;
use crate::sectors::SECTOR_BYTES;
use std::sync::Mutex;

const SECTORS: usize = 64;

/// Bytes in memory, and how they were cleared.
struct Memory {
    bytes: Mutex<Vec<u8>>,
    is_full: bool,
}

impl Memory {
    fn new(is_full: bool) -> Memory {
        let bytes = (0..SECTORS * 512).map(|at| (at / 512 + 1) as u8).collect();
        Memory { bytes: Mutex::new(bytes), is_full }
    }

    fn sector(&self, at: usize) -> Vec<u8> {
        self.bytes.lock().unwrap()[at * 512..][..512].to_vec()
    }

    fn fill(&self, offset: u64, bytes: u64, value: u8) -> Result<(), BlocksError> {
        let (start, end) = (offset as usize, (offset + bytes) as usize);
        self.bytes.lock().unwrap()[start..end].fill(value);
        Ok(())
    }
}

impl Blocks for Memory {
    fn size_bytes(&self) -> u64 {
        (SECTORS * 512) as u64
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        into.copy_from_slice(&self.bytes.lock().unwrap()[offset as usize..][..into.len()]);
        Ok(())
    }

    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        if self.is_full {
            return Err(BlocksError::NoSpace);
        }
        self.bytes.lock().unwrap()[offset as usize..][..from.len()].copy_from_slice(from);
        Ok(())
    }

    /// Told from a discard by what it leaves.
    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.fill(offset, bytes, 0xee)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.fill(offset, bytes, 0xdd)
    }

    fn flush(&self) -> Result<(), BlocksError> {
        unreachable!("the caller flushes")
    }

    fn atomic_bytes_max(&self) -> usize {
        1 << 20
    }
}

fn asked(kind: u32, sector: u64, sectors: u32) -> Description {
    Description { kind, sectors, sector }
}

#[test]
fn data_goes_from_the_kernel_to_the_disk_and_back() {
    let (memory, file) = (Memory::new(false), tempfile::tempfile().unwrap());
    let mut performer = Performer::new(&memory);
    let data = Data { file: &file, start: 4096 };
    file.write_all_at(&[7; 1024], 4096).unwrap();
    let answer = performer.perform(&asked(request::WRITE.into(), 3, 2), data).unwrap();
    assert_eq!(answer, Answer { bytes: 1024, needs_flush: false });
    assert_eq!((memory.sector(2)[0], memory.sector(3)[0], memory.sector(4)[511]), (3, 7, 7));
    let answer = performer.perform(&asked(request::READ.into(), 2, 2), data).unwrap();
    assert_eq!(answer, Answer { bytes: 1024, needs_flush: false });
    let mut given = [0; 1024];
    file.read_exact_at(&mut given, 4096).unwrap();
    assert_eq!((given[0], given[512]), (3, 7));
}

#[test]
fn a_flush_and_a_forced_change_wait_for_the_disk() {
    let (memory, file) = (Memory::new(false), tempfile::tempfile().unwrap());
    let mut performer = Performer::new(&memory);
    let data = Data { file: &file, start: 0 };
    file.write_all_at(&[1; 512], 0).unwrap();
    let flush = performer.perform(&asked(request::FLUSH.into(), u64::MAX, 0), data).unwrap();
    assert_eq!(flush, Answer { bytes: 0, needs_flush: true });
    let forced = u32::from(request::WRITE) | request::FUA;
    let forced = performer.perform(&asked(forced, 0, 1), data).unwrap();
    assert_eq!(forced, Answer { bytes: SECTOR_BYTES as i32, needs_flush: true });
}

#[test]
fn ranges_are_given_back_or_written_with_zeros_as_the_kernel_says() {
    let (memory, file) = (Memory::new(false), tempfile::tempfile().unwrap());
    let mut performer = Performer::new(&memory);
    let data = Data { file: &file, start: 0 };
    let keep = u32::from(request::WRITE_ZEROES) | request::NO_UNMAP;
    for (kind, left) in [(request::DISCARD.into(), 0xdd), (keep, 0xee)] {
        performer.perform(&asked(kind, 5, 1), data).unwrap();
        assert_eq!(memory.sector(5), [left; 512]);
        assert_eq!(memory.sector(6), [7; 512]);
    }
}

#[test]
fn what_a_request_fails_with_is_told() {
    let (memory, file) = (Memory::new(true), tempfile::tempfile().unwrap());
    let mut performer = Performer::new(&memory);
    let data = Data { file: &file, start: 0 };
    let mut result = |asked| performer.perform(&asked, data).unwrap_err().result();
    // The file is empty: the kernel has no data.
    assert_eq!(result(asked(request::WRITE.into(), 0, 1)), -libc::EIO);
    file.write_all_at(&[1; 512], 0).unwrap();
    assert_eq!(result(asked(request::WRITE.into(), 0, 1)), -libc::ENOSPC);
    assert_eq!(result(asked(request::READ.into(), 1 << 20, 1)), -libc::EIO);
    assert_eq!(result(asked(9, 0, 1)), -libc::EOPNOTSUPP);
}
