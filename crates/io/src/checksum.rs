//! CRC-32C (Castagnoli) by the processor's own instruction where there is one.
//!
//! Promise: the same number on every machine; a checksum may be taken in pieces.
//! Never: detects deliberate change. It finds accidents only.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod raw;
#[cfg(test)]
mod tests;

/// [`crc32c()`] for this processor, found out once: for who takes many sums of little.
#[must_use]
pub fn chosen() -> fn(seed: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(chosen) = raw::chosen() {
        return chosen;
    }
    crc32c
}

/// The CRC-32C of `bytes`, continuing from `seed`.
///
/// A seed of 0 starts afresh. Passing the result for one piece as the seed of the next gives the
/// checksum of both pieces joined (RFC 3720, appendix B.4 has the check values).
#[must_use]
#[inline]
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(chosen) = raw::chosen() {
        return chosen(seed, bytes);
    }
    crc32c::crc32c_append(seed, bytes)
}
