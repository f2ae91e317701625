//! What a disk and a cache promise, seen from outside.
//!
//! Promise: each test names one behaviour; a failing random test prints the command that repeats
//! it with the same seed.
//! Never: asserts how long something took.

// A test that cannot go on stops; its helpers are no exception.
#![allow(clippy::unwrap_used)]

mod cache_death;
mod cached;
mod common;
mod damage;
mod death;
mod disk;
mod threads;
