//! A machine that lies within what real machines do.
//!
//! Promise: everything it does follows from its seed and from the calls made to it.
//! Never: touches the real disk, clock or entropy.

mod clock;
mod entropy;
mod random;

pub use clock::FakeClock;
pub use entropy::FakeEntropy;
pub use random::Random;
