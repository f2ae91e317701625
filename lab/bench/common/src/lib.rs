//! What every measurement needs, whatever it measures.
//!
//! Promise: a command line, a clock, a folder, a child, a count of the device's work and a ledger
//! are the same in every benchmark, so that their figures can stand beside each other.
//! Never: knows what is measured.
//!
//! Where to look: `task` is what a run is asked for, `clock` is time of the wall and of the
//! processors, `place` the folders that a run works in, `child` a process that is killed, `flushes`
//! what the device did, `ledger` every run of every figure and `ratios` what follows from two of
//! them; `output` prints.

pub mod child;
pub mod clock;
pub mod colours;
pub mod flushes;
pub mod ledger;
pub mod output;
pub mod place;
pub mod random;
pub mod ratios;
pub mod task;

/// Whatever ends a run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
