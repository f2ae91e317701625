//! What clients see of snapshots, and what is left when somebody dies.
//!
//! Promise: each test names one behaviour. Content follows from numbers that stand in the tests.
//! Never: asserts how long something took.

// A test that cannot go on stops; its helpers are no exception.
#![allow(clippy::unwrap_used)]

mod basics;
mod damage;
mod death;
mod support;
