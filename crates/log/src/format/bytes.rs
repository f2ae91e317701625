//! Numbers in the bytes of the log's small files.
//!
//! Promise: little endian, wherever they lie.
//! Never: looks whether there are as many bytes; the caller has.

/// `N` bytes at `at`; the caller has checked the length.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes is N bytes long")
}

/// A little-endian u32 at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// A little-endian u64 at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}
