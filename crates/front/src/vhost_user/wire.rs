//! Numbers of the virtio block device.
//!
//! Promise: every number that goes over the border has its name here. Source: Virtio 1.3, 5.2.
//! Never: computes anything but the configuration that a driver reads.

use crate::sectors::SECTOR_BYTES;

/// Features of the device, as a driver sees them.
pub(crate) mod feature {
    pub(crate) const SIZE_MAX: u64 = 1 << 1;
    pub(crate) const SEG_MAX: u64 = 1 << 2;
    pub(crate) const BLK_SIZE: u64 = 1 << 6;
    pub(crate) const FLUSH: u64 = 1 << 9;
    pub(crate) const TOPOLOGY: u64 = 1 << 10;
    pub(crate) const CONFIG_WCE: u64 = 1 << 11;
    pub(crate) const MQ: u64 = 1 << 12;
    pub(crate) const DISCARD: u64 = 1 << 13;
    pub(crate) const WRITE_ZEROES: u64 = 1 << 14;
    pub(crate) const INDIRECT_DESC: u64 = 1 << 28;
    pub(crate) const EVENT_IDX: u64 = 1 << 29;
    pub(crate) const VERSION_1: u64 = 1 << 32;

    /// What this device can do.
    pub(crate) const ALL: u64 = SIZE_MAX
        | SEG_MAX
        | BLK_SIZE
        | FLUSH
        | TOPOLOGY
        | CONFIG_WCE
        | MQ
        | DISCARD
        | WRITE_ZEROES
        | INDIRECT_DESC
        | EVENT_IDX
        | VERSION_1;
}

/// Kinds of requests.
pub(crate) mod request {
    pub(crate) const READ: u32 = 0;
    pub(crate) const WRITE: u32 = 1;
    pub(crate) const FLUSH: u32 = 4;
    pub(crate) const GET_ID: u32 = 8;
    pub(crate) const DISCARD: u32 = 11;
    pub(crate) const WRITE_ZEROES: u32 = 13;
}

/// The last byte of every answer.
pub(crate) mod status {
    pub(crate) const OK: u8 = 0;
    pub(crate) const IO_ERROR: u8 = 1;
    pub(crate) const UNSUPPORTED: u8 = 2;
}

/// Every request begins with a kind and a sector.
pub(crate) const HEADER_BYTES: usize = 16;
/// One range of a discard, or of a write of zeros.
pub(crate) const RANGE_BYTES: usize = 16;
/// In a range: its space may be given back.
pub(crate) const RANGE_UNMAP: u32 = 1;
/// The answer to GET_ID.
pub(crate) const ID_BYTES: usize = 20;

/// Ranges of one request.
pub(crate) const RANGES_MAX: u32 = 32;
/// Sectors of one range: 1 GiB.
pub(crate) const RANGE_SECTORS_MAX: u32 = 1 << 21;
/// Pieces of memory that one request may have. With the header and the status, a queue of 128.
const SEGMENTS_MAX: u32 = 126;
/// Bytes of one such piece: 1 MiB.
const SEGMENT_BYTES_MAX: u32 = 1 << 20;
/// Bytes of one request's data. A longer one would keep its queue from ending.
pub(crate) const DATA_BYTES_MAX: u64 = SEGMENTS_MAX as u64 * SEGMENT_BYTES_MAX as u64;

/// Where the configuration has its one field that a driver may write: 1 says that the device has a
/// write cache.
pub(crate) const WCE_AT: usize = 32;
const CONFIG_BYTES: usize = 60;

/// The configuration of a disk of `size_bytes`.
pub(crate) fn configuration(size_bytes: u64, queues: u16, wce: bool) -> [u8; CONFIG_BYTES] {
    let mut bytes = [0; CONFIG_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &(size_bytes / SECTOR_BYTES).to_le_bytes());
    put(8, &SEGMENT_BYTES_MAX.to_le_bytes());
    put(12, &SEGMENTS_MAX.to_le_bytes());
    put(20, &(SECTOR_BYTES as u32).to_le_bytes());
    // Eight sectors are a block that is best written whole, aligned to its size.
    put(24, &[3, 0]);
    put(26, &8_u16.to_le_bytes());
    put(WCE_AT, &[u8::from(wce)]);
    put(34, &queues.to_le_bytes());
    put(36, &RANGE_SECTORS_MAX.to_le_bytes());
    put(40, &RANGES_MAX.to_le_bytes());
    put(44, &8_u32.to_le_bytes());
    put(48, &RANGE_SECTORS_MAX.to_le_bytes());
    put(52, &RANGES_MAX.to_le_bytes());
    put(56, &[1]);
    bytes
}
