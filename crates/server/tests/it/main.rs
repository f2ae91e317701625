//! The server as its clients meet it: real sockets, real regions, real kills.

// In a test, and in what tests are made of, a failed step is the end of the test; a seed is said.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod basics;
mod burdens;
mod damaged_notes;
mod disks;
mod disks_killed;
mod hostile;
mod identities;
mod kills;
mod manners;
mod raw;
mod responders;
mod strangers;
mod support;
