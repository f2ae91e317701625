//! Numbers in as few bytes as they need: 7 bits a byte, the lowest first, the top bit set in all
//! but the last (LEB128).
//!
//! Promise: a number has one encoding, of 1 to 10 bytes; whatever else is found there is refused.
//! Never: writes a sign.

/// The most bytes that a number takes.
pub const BYTES_MAX: usize = 10;

const MORE: u8 = 0x80;
const BITS: u32 = 7;

/// Appends a number.
#[inline]
pub fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= u64::from(MORE) {
        out.push(number as u8 | MORE);
        number >>= BITS;
    }
    out.push(number as u8);
}

/// How many bytes [`put`] appends.
#[must_use]
#[inline]
pub const fn bytes(number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    bits.div_ceil(BITS) as usize
}

/// Takes a number off the front. None if the bytes end within it, if it is above 2^64 - 1, or if
/// [`put`] would have written it otherwise; the bytes are as they were then.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    match **bytes {
        // Most are so short.
        [byte, ref rest @ ..] if byte < MORE => {
            *bytes = rest;
            Some(byte.into())
        }
        _ => take_long(bytes),
    }
}

fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for (at, byte) in bytes.iter().take(BYTES_MAX).enumerate() {
        let (part, shift) = (u64::from(byte & !MORE), BITS * at as u32);
        if (part << shift) >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte & MORE == 0 {
            if *byte == 0 && at > 0 {
                return None;
            }
            *bytes = &bytes[at + 1..];
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests;
