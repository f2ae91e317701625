//! Numbers of the kernel's interface, and the structures that cross it.
//!
//! Promise: every number that goes over the border has its name here. Source:
//! include/uapi/linux/ublk_cmd.h of Linux 6.12.
//! Never: asks the kernel for anything.
#![expect(clippy::host_endian_bytes, reason = "the kernel speaks the machine's byte order")]

use std::path::PathBuf;

use crate::sectors::SECTOR_BYTES;

#[cfg(test)]
mod tests;

/// Where commands go.
pub(crate) const CONTROL_PATH: &str = "/dev/ublk-control";

/// Where a device's server talks to the kernel.
pub(crate) fn server_path(id: u32) -> PathBuf {
    format!("/dev/ublkc{id}").into()
}

/// Commands about a device.
pub(crate) mod command {
    use super::{CONTROL_BYTES, READ, READ_WRITE, code};

    pub(crate) const GET_INFO: u32 = code(READ, 0x02, CONTROL_BYTES);
    pub(crate) const ADD: u32 = code(READ_WRITE, 0x04, CONTROL_BYTES);
    pub(crate) const DELETE: u32 = code(READ_WRITE, 0x05, CONTROL_BYTES);
    pub(crate) const START: u32 = code(READ_WRITE, 0x06, CONTROL_BYTES);
    pub(crate) const STOP: u32 = code(READ_WRITE, 0x07, CONTROL_BYTES);
    pub(crate) const SET_PARAMETERS: u32 = code(READ_WRITE, 0x08, CONTROL_BYTES);
    pub(crate) const GET_PARAMETERS: u32 = code(READ, 0x09, CONTROL_BYTES);
    pub(crate) const START_RECOVERY: u32 = code(READ_WRITE, 0x10, CONTROL_BYTES);
    pub(crate) const END_RECOVERY: u32 = code(READ_WRITE, 0x11, CONTROL_BYTES);
    pub(crate) const DELETE_LATER: u32 = code(READ, 0x14, CONTROL_BYTES);
}

/// Commands of a queue.
pub(crate) const FETCH: u32 = code(READ_WRITE, 0x20, QUEUE_BYTES);
pub(crate) const COMMIT_AND_FETCH: u32 = code(READ_WRITE, 0x21, QUEUE_BYTES);

const READ: u32 = 2;
const READ_WRITE: u32 = 3;

/// The number of a command, as `_IOC` of linux/ioctl.h makes it.
const fn code(direction: u32, number: u32, bytes: usize) -> u32 {
    direction << 30 | (bytes as u32) << 16 | (b'u' as u32) << 8 | number
}

/// The state of a device that was added and never started, or was stopped. In every other one,
/// programs know it.
pub(crate) const DEAD: u16 = 0;

/// Requests.
pub(crate) mod request {
    pub(crate) const READ: u8 = 0;
    pub(crate) const WRITE: u8 = 1;
    pub(crate) const FLUSH: u8 = 2;
    pub(crate) const DISCARD: u8 = 3;
    pub(crate) const WRITE_ZEROES: u8 = 5;
    /// A change is answered when it is durable.
    pub(crate) const FUA: u32 = 1 << 13;
    /// Space of a range of zeros is not given back.
    pub(crate) const NO_UNMAP: u32 = 1 << 15;
}

/// A device outlives its server, requests that were not answered are sent again, and data is
/// fetched and given by system calls.
pub(crate) const FEATURES: u64 = 1 << 3 | 1 << 4 | 1 << 7;

/// Of all queues.
pub(crate) const ANY_QUEUE: u16 = u16::MAX;

/// Bytes of one request's data, and of a queue's buffer.
pub(crate) const DATA_BYTES_MAX: usize = 1 << 20;
/// Sectors of one discard: 1 GiB.
const RANGE_SECTORS_MAX: u32 = 1 << 21;

/// Bytes of a command about a device.
pub(crate) const CONTROL_BYTES: usize = 32;
/// Bytes of a queue's command.
pub(crate) const QUEUE_BYTES: usize = 16;
/// Bytes of what a device is.
pub(crate) const INFO_BYTES: usize = 64;
/// Bytes of the parameters that are used here.
pub(crate) const PARAMETERS_BYTES: usize = 64;
/// Bytes of a request's description.
pub(crate) const REQUEST_BYTES: usize = 24;

/// Descriptions that each queue has room for where they are mapped, used or not.
const DEPTH_MAX: u64 = 4096;

/// Where a queue's descriptions are mapped.
pub(crate) fn requests_at(queue: u16, page_bytes: u64) -> u64 {
    u64::from(queue) * (DEPTH_MAX * REQUEST_BYTES as u64).next_multiple_of(page_bytes)
}

/// Where the data of a request is, for reading and writing the server's file.
pub(crate) fn data_at(queue: u16, tag: u16) -> u64 {
    const BASE: u64 = 0x8000_0000;
    BASE + (u64::from(queue) << 41) + (u64::from(tag) << 25)
}

/// A command about a device, whose structure is at `address`, `bytes` long.
pub(crate) fn control(id: u32, address: u64, bytes: u16, value: u64) -> [u8; CONTROL_BYTES] {
    let mut command = [0; CONTROL_BYTES];
    let mut put = |at: usize, value: &[u8]| command[at..at + value.len()].copy_from_slice(value);
    put(0, &id.to_ne_bytes());
    put(4, &ANY_QUEUE.to_ne_bytes());
    put(6, &bytes.to_ne_bytes());
    put(8, &address.to_ne_bytes());
    put(16, &value.to_ne_bytes());
    command
}

/// A command of a queue: the request `tag` came to `result`.
pub(crate) fn of_queue(queue: u16, tag: u16, result: i32) -> [u8; QUEUE_BYTES] {
    let mut command = [0; QUEUE_BYTES];
    let mut put = |at: usize, value: &[u8]| command[at..at + value.len()].copy_from_slice(value);
    put(0, &queue.to_ne_bytes());
    put(2, &tag.to_ne_bytes());
    put(4, &result.to_ne_bytes());
    command
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    pub(crate) queues: u16,
    pub(crate) depth: u16,
    pub(crate) state: u16,
    pub(crate) id: u32,
    pub(crate) server_pid: i32,
    pub(crate) features: u64,
    /// Kept by the kernel, and of no meaning to it.
    pub(crate) mark: u64,
}

impl Info {
    pub(crate) fn to_bytes(self) -> [u8; INFO_BYTES] {
        let mut bytes = [0; INFO_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.queues.to_ne_bytes());
        put(2, &self.depth.to_ne_bytes());
        put(4, &self.state.to_ne_bytes());
        put(8, &(DATA_BYTES_MAX as u32).to_ne_bytes());
        put(12, &self.id.to_ne_bytes());
        put(16, &self.server_pid.to_ne_bytes());
        put(24, &self.features.to_ne_bytes());
        put(32, &self.mark.to_ne_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; INFO_BYTES]) -> Info {
        Info {
            queues: u16::from_ne_bytes(at(bytes, 0)),
            depth: u16::from_ne_bytes(at(bytes, 2)),
            state: u16::from_ne_bytes(at(bytes, 4)),
            id: u32::from_ne_bytes(at(bytes, 12)),
            server_pid: i32::from_ne_bytes(at(bytes, 16)),
            features: u64::from_ne_bytes(at(bytes, 24)),
            mark: u64::from_ne_bytes(at(bytes, 32)),
        }
    }
}

/// What programs are told of a device of so many bytes.
pub(crate) fn parameters(size_bytes: u64) -> [u8; PARAMETERS_BYTES] {
    const WRITE_CACHE_AND_FUA: u32 = 1 << 2 | 1 << 3;
    const SECTOR_SHIFT: u8 = 9;
    // Eight sectors are a block that is best written whole, aligned to its size.
    const BLOCK_SHIFT: u8 = 12;
    let mut bytes = [0; PARAMETERS_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &(PARAMETERS_BYTES as u32).to_ne_bytes());
    // Both parts follow: the basic one, and that of discards.
    put(4, &3_u32.to_ne_bytes());
    put(8, &WRITE_CACHE_AND_FUA.to_ne_bytes());
    put(12, &[SECTOR_SHIFT, BLOCK_SHIFT, BLOCK_SHIFT, BLOCK_SHIFT]);
    put(16, &((DATA_BYTES_MAX as u64 / SECTOR_BYTES) as u32).to_ne_bytes());
    put(SIZE_AT, &(size_bytes / SECTOR_BYTES).to_ne_bytes());
    put(44, &(1_u32 << BLOCK_SHIFT).to_ne_bytes());
    put(48, &RANGE_SECTORS_MAX.to_ne_bytes());
    put(52, &RANGE_SECTORS_MAX.to_ne_bytes());
    put(56, &1_u16.to_ne_bytes());
    bytes
}

/// Where parameters have the device's size in sectors.
const SIZE_AT: usize = 24;

/// The size in sectors that parameters tell.
pub(crate) fn sectors_of(parameters: &[u8; PARAMETERS_BYTES]) -> u64 {
    u64::from_ne_bytes(at(parameters, SIZE_AT))
}

/// A request's description, as the kernel writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The kind in the low byte, flags above it.
    pub kind: u32,
    /// How much, in sectors of 512 bytes.
    pub sectors: u32,
    /// Where it starts, in sectors. A flush has anything there.
    pub sector: u64,
}

impl Description {
    pub(crate) fn from_bytes(bytes: &[u8; REQUEST_BYTES]) -> Description {
        Description {
            kind: u32::from_ne_bytes(at(bytes, 0)),
            sectors: u32::from_ne_bytes(at(bytes, 4)),
            sector: u64::from_ne_bytes(at(bytes, 8)),
        }
    }
}

fn at<const BYTES: usize>(bytes: &[u8], at: usize) -> [u8; BYTES] {
    *bytes[at..].first_chunk().expect("inside the structure")
}
