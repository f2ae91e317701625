//! Memory that remembers every store, so that it can be looked at as a death would leave it.
//!
//! Promise: an image has the stores up to some moment and none after it; one that a crash of the
//! system left has those that were persisted, and any of the later ones.
//! Never: reorders what was persisted.

use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_io::fake::Random;

use crate::memory::Memory;

/// What a copy does in one step. Real ones are smaller, which only makes more of the same states.
const STEP_BYTES: usize = 512;

/// What a processor writes back at once.
const LINE_BYTES: u64 = 64;

/// One thing that was done to the memory.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Store { at: u64, bytes: Vec<u8> },
    Persist { at: u64, bytes: u64 },
}

#[derive(Debug)]
pub(super) struct Recorded(Mutex<State>);

#[derive(Debug)]
struct State {
    image: Vec<u8>,
    steps: Vec<Step>,
}

impl Recorded {
    pub(super) fn zeros(bytes: u64) -> Recorded {
        Recorded::of(vec![0; bytes as usize])
    }

    pub(super) fn of(image: Vec<u8>) -> Recorded {
        Recorded(Mutex::new(State { image, steps: Vec::new() }))
    }

    /// The bytes as they are.
    pub(super) fn image(&self) -> Vec<u8> {
        self.state().image.clone()
    }

    /// What was done since the last call of this.
    pub(super) fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut self.state().steps)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, at: u64, bytes: &[u8]) {
        let mut state = self.state();
        state.image[at as usize..][..bytes.len()].copy_from_slice(bytes);
        state.steps.push(Step::Store { at, bytes: bytes.to_vec() });
    }
}

impl Memory for Recorded {
    fn load(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        self.copy_out(at, &mut word);
        u64::from_le_bytes(word)
    }

    fn store(&self, at: u64, value: u64) {
        self.step(at, &value.to_le_bytes());
    }

    fn copy_out(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.state().image[at as usize..][..into.len()]);
    }

    fn copy_in(&self, at: u64, from: &[u8]) {
        for (at, bytes) in (at..).step_by(STEP_BYTES).zip(from.chunks(STEP_BYTES)) {
            self.step(at, bytes);
        }
    }

    fn persist(&self, at: u64, bytes: u64) {
        self.state().steps.push(Step::Persist { at, bytes });
    }

    fn set_counter(&self, _counter: usize, _value: u64) {}

    fn count(&self, _counter: usize, _change: i64) {}
}

/// What a process that dies after `steps` leaves.
pub(super) fn after_process(before: &[u8], steps: &[Step]) -> Vec<u8> {
    let mut image = before.to_vec();
    for step in steps {
        if let Step::Store { at, bytes } = step {
            image[*at as usize..][..bytes.len()].copy_from_slice(bytes);
        }
    }
    image
}

/// What a system that dies after `steps` may leave in persistent memory: of what no later step
/// persisted, any lines, each as it was after any store.
pub(super) fn after_system(before: &[u8], steps: &[Step], random: &mut Random) -> Vec<u8> {
    let mut image = before.to_vec();
    for (index, step) in steps.iter().enumerate() {
        let Step::Store { at, bytes } = step else { continue };
        for (word, part) in (*at..).step_by(8).zip(bytes.chunks(8)) {
            if is_persisted(word, &steps[index..]) || random.chance(50) {
                image[word as usize..][..part.len()].copy_from_slice(part);
            }
        }
    }
    image
}

/// Whether one of the steps writes the line of this word back.
fn is_persisted(word: u64, steps: &[Step]) -> bool {
    let line = word / LINE_BYTES;
    steps.iter().any(|step| match step {
        Step::Persist { at, bytes } => {
            *bytes != 0 && (at / LINE_BYTES..=(at + bytes - 1) / LINE_BYTES).contains(&line)
        }
        Step::Store { .. } => false,
    })
}
