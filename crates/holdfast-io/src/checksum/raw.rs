//! The processor's instruction for CRC-32C, for inputs that are shorter than it takes to split them
//! in many.
//!
//! Promise: a few nanoseconds for a header, without a byte at a time except at the end; from 64
//! bytes on, two halves at once, because one sum waits three cycles for every word.
//! Never: runs on a processor that lacks the instructions.
//!
//! Joining two sums: the first times x to the power of the second's bits, modulo the polynomial. A
//! carry-less product of two reflected 32-bit numbers, taken for 64 bits, is their product times x,
//! and the CRC instruction multiplies by x to the 32: so the table has x to the (bits - 33).

use std::arch::x86_64::{
    _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
};

/// Words from which on two halves pay.
const TWO_WORDS: usize = 8;
/// Words in the longest half.
const HALF_WORDS_MAX: usize = super::LONG_BYTES / 8 / 2;

/// What joins a sum to that of so many words behind it.
const JOINS: [u32; HALF_WORDS_MAX + 1] = joins();

const fn joins() -> [u32; HALF_WORDS_MAX + 1] {
    let mut table = [0; HALF_WORDS_MAX + 1];
    let (mut power, mut bits, mut words) = (1u32 << 31, 0, 1);
    while words <= HALF_WORDS_MAX {
        while bits < 64 * words - 33 {
            power = (power >> 1) ^ (0x82F6_3B78 & (power & 1).wrapping_neg());
            bits += 1;
        }
        table[words] = power;
        words += 1;
    }
    table
}

/// The CRC-32C of `bytes`, continuing from `seed`; None if there are no such instructions.
#[inline]
pub(super) fn short(seed: u32, bytes: &[u8]) -> Option<u32> {
    assert!(bytes.len() < super::LONG_BYTES);
    if !is_x86_feature_detected!("sse4.2") || !is_x86_feature_detected!("pclmulqdq") {
        return None;
    }
    // SAFETY: the processor has just been asked for what the function needs.
    Some(unsafe { sum(seed, bytes) })
}

#[target_feature(enable = "sse4.2,pclmulqdq")]
fn sum(seed: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = u64::from(!seed);
    let mut single = words;
    if words.len() >= TWO_WORDS {
        let (first, others) = words.split_at(words.len() / 2);
        let (second, last) = others.split_at(first.len());
        let mut behind = 0;
        for (one, two) in first.iter().zip(second) {
            sum = _mm_crc32_u64(sum, u64::from_le_bytes(*one));
            behind = _mm_crc32_u64(behind, u64::from_le_bytes(*two));
        }
        sum = join(sum, second.len()) ^ behind;
        single = last;
    }
    for word in single {
        sum = _mm_crc32_u64(sum, u64::from_le_bytes(*word));
    }
    let mut sum = sum as u32;
    for byte in rest {
        sum = _mm_crc32_u8(sum, *byte);
    }
    !sum
}

/// What a sum becomes by so many words of zeros.
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn join(sum: u64, words: usize) -> u64 {
    let (sum, power) = (sum as i64, i64::from(JOINS[words]));
    let product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(sum), _mm_cvtsi64_si128(power), 0);
    _mm_crc32_u64(0, _mm_cvtsi128_si64(product) as u64)
}
