//! What a typed log promises, said by its tests.
//!
//! `support` has the record of the paper and the places that logs under test lie in.

// A test that unwraps says where it failed, and so does a helper of one.
#![allow(clippy::unwrap_used)]

mod basics;
mod checkpoints;
mod checkpoints_under_cuts;
mod clocks;
mod compressed;
mod corruption;
mod damaged_directories;
mod ends;
mod examples;
mod failed_syncs;
mod faults;
mod flips;
mod foreign_files;
mod forged;
mod forks;
mod formats;
mod full_disk;
mod fuzzed;
mod kills;
mod look_ahead;
mod lost_files;
mod pitfalls;
mod positions;
mod power;
mod refusals;
mod rings;
mod sealed;
mod support;
mod survival;
mod tails;
mod tickets;
mod watch;
