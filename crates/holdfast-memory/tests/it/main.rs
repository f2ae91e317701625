//! What a region promises, seen from outside.
//!
//! Promise: each test names one behaviour; a failing random test prints the command that repeats
//! it with the same seed.
//! Never: asserts how long something took.

mod claim;
mod common;
mod ring;
