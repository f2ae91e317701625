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
    _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi64_si128,
    _mm_cvtsi128_si64,
};

/// From here on it pays to split the bytes and join the sums, which the crate below does.
const LONG_BYTES: usize = 768;
/// Words from which on two halves pay.
const TWO_WORDS: usize = 8;
/// Words in the longest half.
const HALF_WORDS_MAX: usize = LONG_BYTES / 8 / 2;

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

/// CRC-32C with these instructions, for any input; None if the processor has none.
#[inline]
pub(super) fn chosen() -> Option<fn(u32, &[u8]) -> u32> {
    let has_both = is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq");
    has_both.then_some(with_instructions)
}

/// To be had of [`chosen`] alone.
fn with_instructions(seed: u32, bytes: &[u8]) -> u32 {
    if bytes.len() >= LONG_BYTES {
        return crc32c::crc32c_append(seed, bytes);
    }
    // SAFETY: whoever has this function was given it because the processor has what it needs.
    unsafe { short(seed, bytes) }
}

#[target_feature(enable = "sse4.2,pclmulqdq")]
fn short(seed: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = u64::from(!seed);
    let mut single = words;
    if words.len() >= TWO_WORDS {
        let (first, others) = words.split_at(words.len() / 2);
        let (second, last) = others.split_at(first.len());
        sum = halves(sum, first, second);
        single = last;
    }
    for word in single {
        sum = _mm_crc32_u64(sum, u64::from_le_bytes(*word));
    }
    !last_bytes(sum as u32, rest)
}

/// The sum of two halves of equal length, which are at most half of a long input each.
#[inline]
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn halves(seed: u64, first: &[[u8; 8]], second: &[[u8; 8]]) -> u64 {
    let (mut sum, mut behind) = (seed, 0);
    let (fours, ones) = first.as_chunks::<4>();
    let (other_fours, other_ones) = second.as_chunks::<4>();
    for (four, other) in fours.iter().zip(other_fours) {
        for (one, two) in four.iter().zip(other) {
            sum = _mm_crc32_u64(sum, u64::from_le_bytes(*one));
            behind = _mm_crc32_u64(behind, u64::from_le_bytes(*two));
        }
    }
    for (one, two) in ones.iter().zip(other_ones) {
        sum = _mm_crc32_u64(sum, u64::from_le_bytes(*one));
        behind = _mm_crc32_u64(behind, u64::from_le_bytes(*two));
    }
    join(sum, second.len()) ^ behind
}

/// At most 7 bytes.
#[inline]
#[target_feature(enable = "sse4.2")]
fn last_bytes(mut sum: u32, mut bytes: &[u8]) -> u32 {
    if let Some((four, rest)) = bytes.split_first_chunk() {
        sum = _mm_crc32_u32(sum, u32::from_le_bytes(*four));
        bytes = rest;
    }
    for byte in bytes {
        sum = _mm_crc32_u8(sum, *byte);
    }
    sum
}

/// What a sum becomes by so many words of zeros.
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn join(sum: u64, words: usize) -> u64 {
    let (sum, power) = (sum as i64, i64::from(JOINS[words]));
    let product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(sum), _mm_cvtsi64_si128(power), 0);
    _mm_crc32_u64(0, _mm_cvtsi128_si64(product) as u64)
}
