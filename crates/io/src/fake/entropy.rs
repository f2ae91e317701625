//! Random bytes from a seed.
//!
//! Promise: the same seed gives the same bytes; clones draw from one source.
//! Never: fit for secrets.

use std::sync::{Arc, Mutex, PoisonError};

use super::Random;
use crate::Entropy;

/// Random bytes from a seed.
#[derive(Clone, Debug)]
pub struct FakeEntropy {
    random: Arc<Mutex<Random>>,
}

impl FakeEntropy {
    /// Bytes that follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> FakeEntropy {
        FakeEntropy { random: Arc::new(Mutex::new(Random::new(seed))) }
    }
}

impl Entropy for FakeEntropy {
    fn fill(&self, into: &mut [u8]) {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).fill(into);
    }
}
