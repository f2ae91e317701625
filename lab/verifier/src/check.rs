//! CRC-32C and little-endian numbers, a byte at a time.
//!
//! Promise: the check of RFC 3720, slowly; a number that is not there is none.
//! Never: takes a line of it from anybody.

/// The polynomial, its bits in the order of the bytes.
const POLYNOMIAL: u32 = 0x82F6_3B78;
/// What a byte makes of a sum.
const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let (mut sum, mut bit) = (byte as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

/// The check of bytes, continued from that of others; 0 begins.
pub(crate) fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    let byte = |sum: u32, byte: &u8| TABLE[(sum as u8 ^ byte) as usize] ^ sum >> 8;
    !bytes.iter().fold(!seed, byte)
}

/// Two bytes as a number.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Four bytes as a number.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Eight bytes as a number.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;
