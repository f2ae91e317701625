//! A machine that lies within what real machines do.
//!
//! Promise: everything it does follows from its seed and from the calls made to it.
//! Never: touches the real disk, clock or entropy.
//!
//! [`FakeFiles`] is a disk with a page cache above it. What no sync has covered may be lost, kept,
//! or torn when the power is cut; what a sync has covered is always there, unless a [`Fault`] says
//! otherwise.
//!
//! [`Forked`] is no model: a process cannot be given a child but by having one.

mod calls;
mod clock;
mod contents;
mod crash;
mod entropy;
mod faults;
mod files;
mod forked;
mod inode;
mod labels;
mod limits;
mod machine;
mod mood;
mod names;
mod open_file;
mod random;
mod room;
mod transfer;
mod turn;
mod xattr;

pub use clock::FakeClock;
pub use entropy::FakeEntropy;
pub use faults::{EINTR, EIO, ENOSPC, Effect, Fault, Operation};
pub use files::{FakeFiles, is_power_cut};
pub use forked::Forked;
pub use inode::Hindrance;
pub use limits::FakeLimits;
pub use mood::{Mood, Sectors};
pub use random::Random;
