//! The command as its users meet it: the real binary, real mounts, real kills.
//!
//! Needs root and `/dev/fuse`. Each test has directories, a socket and a region of its own.

// In a test, and in what tests are made of, a failed step is the end of the test.
#![allow(clippy::unwrap_used)]

mod block;
mod configuration;
mod disks;
mod fixture;
mod keeper_lost;
mod life;
mod log_commands;
mod log_follow;
mod names;
mod plan_commands;
mod reserved;
mod run;
mod served;
mod standby;
mod store_commands;
mod store_served;
mod trouble;
mod watchdog;
mod ways;
