//! What a region promises, seen from outside.
//!
//! Promise: each test names one behaviour; a failing random test prints the command that repeats
//! it with the same seed.
//! Never: asserts how long something took.

// A test that cannot go on stops; its helpers are no exception.
#![allow(clippy::unwrap_used)]

mod area;
mod claim;
mod common;
mod damage;
mod death;
mod hostile;
mod hosts;
mod queue;
mod ring;
mod roster;
mod strangers;
