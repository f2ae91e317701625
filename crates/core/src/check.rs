//! CRC-32C (Castagnoli), portable.
//!
//! Promise: gives the same sums as the hardware instruction, one table step a byte.
//! Never: is used on the fast path; a faster function of the same type is handed in there.

/// A checksum over bytes, continued from `seed`; `f(f(0, a), b) == f(0, ab)`.
pub type Check = fn(seed: u32, bytes: &[u8]) -> u32;

const TABLE: [u32; 256] = table();

/// The table of the reflected polynomial 0x82F63B78.
const fn table() -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut index = 0;
    while index < 256 {
        let mut sum = index as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ (0x82F6_3B78 & (sum & 1).wrapping_neg());
            bit += 1;
        }
        table[index] = sum;
        index += 1;
    }
    table
}

/// CRC-32C of `bytes`, continued from `seed` (0 at the start).
#[must_use]
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    let mut sum = !seed;
    for byte in bytes {
        sum = (sum >> 8) ^ TABLE[((sum ^ u32::from(*byte)) & 0xFF) as usize];
    }
    !sum
}

#[cfg(test)]
mod tests;
