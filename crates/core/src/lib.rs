//! The durability-critical logic of Holdfast, without a machine under it.
//!
//! What a log is (frames at byte positions), where the next frame goes, what is drained next, what
//! a crash may have left behind, and what a dead process may have left behind. Events and bytes go
//! in, decisions come out.
//!
//! Promise: every rule that decides whether an acknowledged frame survives is here, in safe code
//! without allocation, with bounded loops, masks instead of divisions, and absolute positions, so
//! that it can be checked exhaustively and proved.
//! Never: touches a disk, a clock, a thread or shared memory.

#![no_std]
#![forbid(unsafe_code)]

pub mod check;
pub mod drain;
pub mod frame;
pub mod handover;
mod lsn;
pub mod recovery;
pub mod ring;

pub use lsn::Lsn;
