//! Behaviour of a store's stream, on a log whose disk tears, loses and fails.
//!
//! Every test that draws from a seed prints it, with the command that replays it, when it fails.

mod analysis;
mod archiving;
mod backup_run;
mod busy;
mod canary;
mod cleaning;
mod comparing;
mod faults;
mod fetch;
mod lives;
mod merging;
mod orders;
mod past;
mod restoring;
mod stream;
mod support;
mod threads;
mod toy;
