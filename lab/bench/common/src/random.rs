//! Numbers that look random and are the same in every run.
//!
//! Promise: the same seed gives the same number.
//! Never: is fit for a secret.

/// One step of splitmix64.
#[must_use]
pub fn mixed(seed: u64) -> u64 {
    let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
