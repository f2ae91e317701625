//! The kernel's random numbers.
//!
//! Promise: fit for keys and identities.
//! Never: repeats itself, or returns fewer bytes than asked.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::Entropy;

/// `getrandom(2)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealEntropy;

impl Entropy for RealEntropy {
    fn fill(&self, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            match getrandom(&mut into[done..], GetRandomFlags::empty()) {
                Ok(bytes) => done += bytes,
                // A signal may cut a long request short; only the rest is asked for again.
                Err(Errno::INTR) => {}
                Err(error) => panic!("getrandom must work on every supported kernel: {error}"),
            }
        }
    }
}
