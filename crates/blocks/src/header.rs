//! The first words of an area: version, block size, and two numbers that say how it is laid out.
//!
//! Promise: what decodes was written by a program that knew the version; another version is told
//! apart from damage.
//! Never: knows what the numbers mean.

use holdfast_io::checksum::crc32c;

use crate::memory::Memory;

/// Bytes of a block: what is read and written without looking at what was there.
pub(crate) const BLOCK_BYTES: usize = 4096;

/// Words behind the first one, which has the version and a check.
const FIELDS: usize = 3;

/// Why a header is none of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// Whole, and of another version.
    OtherVersion { found: u32 },
    /// Its check, or a number in it, is wrong.
    Damaged,
}

/// Writes a header, its first word last.
pub(crate) fn write<M: Memory>(memory: &M, seed: u32, version: u32, numbers: [u64; 2]) {
    let fields = [BLOCK_BYTES as u64, numbers[0], numbers[1]];
    for (at, field) in (8..).step_by(8).zip(fields) {
        memory.store(at, field);
    }
    memory.store(0, versioned(seed, version, &fields));
    memory.persist(0, 8 * (1 + FIELDS as u64));
}

/// The two numbers.
pub(crate) fn read<M: Memory>(
    memory: &M,
    seed: u32,
    version: u32,
) -> Result<[u64; 2], HeaderFault> {
    let first = memory.load(0);
    let fields = std::array::from_fn(|at| memory.load(8 * (1 + at as u64)));
    let found = first as u32;
    if first != versioned(seed, found, &fields) {
        return Err(HeaderFault::Damaged);
    }
    if found != version {
        return Err(HeaderFault::OtherVersion { found });
    }
    let [block_bytes, one, other] = fields;
    if block_bytes == BLOCK_BYTES as u64 { Ok([one, other]) } else { Err(HeaderFault::Damaged) }
}

/// The version, and a check over it and all that follows.
fn versioned(seed: u32, version: u32, fields: &[u64; FIELDS]) -> u64 {
    let start = crc32c(seed, &version.to_le_bytes());
    let check = fields.iter().fold(start, |sum, word| crc32c(sum, &word.to_le_bytes()));
    u64::from(version) | u64::from(check) << 32
}
