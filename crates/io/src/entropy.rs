//! Randomness.
//!
//! Promise: the only way to draw a random number.
//! Never: repeats itself in the real one; always repeats itself in the fake one.

/// A source of random bytes.
pub trait Entropy: Send + Sync {
    /// Fills `into`.
    fn fill(&self, into: &mut [u8]);
}
