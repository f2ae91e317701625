//! The machine that Holdfast runs on: what it is, who has what on it, and the doors to it.
//!
//! Promise: what is told is what the kernel says, and where it, or a file system, may not answer,
//! whoever asks goes on all the same.
//! Never: knows what a keeper, a front end or a server does; changes what is in a home, a log or a
//! region.
//!
//! Where to look: `mounts` and `places` say where paths lead, `processes` looks at other processes,
//! `holders` and `lock` say who has what. `found` tells what a memory or a disk is, `probe` whether
//! a restart spares memory, `disks` how long each takes for a write. `confinement` is what a
//! process gives up, `signals` what does not end it, `service_manager` who started it. `threads`
//! and `bounded` are for work that may not come back, `standstill` says what should move and does
//! not, `advice` what to do about a disk.

#![deny(unsafe_code)]

pub mod advice;
pub mod bounded;
pub mod configuration;
pub mod confinement;
pub mod disks;
pub mod found;
pub mod holders;
pub mod lock;
pub mod mounts;
pub mod places;
pub mod probe;
pub mod processes;
#[allow(unsafe_code)]
pub mod raw;
pub mod service_manager;
pub mod signals;
pub mod standstill;
pub mod threads;
pub mod unasked;
