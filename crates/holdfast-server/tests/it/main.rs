//! The server as its clients meet it: real sockets, real regions, real kills.

// In a test, and in what tests are made of, a failed step is the end of the test.
#![allow(clippy::unwrap_used)]

mod basics;
mod hostile;
mod kills;
mod manners;
mod support;
