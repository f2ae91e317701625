//! The processor's instruction for CRC-32C, for inputs that are shorter than it takes to use it
//! several times at once.
//!
//! Promise: a few nanoseconds for a header, without a byte at a time except at the end.
//! Never: runs on a processor that lacks the instruction.

use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

/// The CRC-32C of `bytes`, continuing from `seed`; None if there is no such instruction.
#[inline]
pub(super) fn one_by_one(seed: u32, bytes: &[u8]) -> Option<u32> {
    if !is_x86_feature_detected!("sse4.2") {
        return None;
    }
    // SAFETY: the processor has just been asked for what the function needs.
    Some(unsafe { steps(seed, bytes) })
}

#[target_feature(enable = "sse4.2")]
fn steps(seed: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = u64::from(!seed);
    for word in words {
        sum = _mm_crc32_u64(sum, u64::from_le_bytes(*word));
    }
    let mut sum = sum as u32;
    for byte in rest {
        sum = _mm_crc32_u8(sum, *byte);
    }
    !sum
}
