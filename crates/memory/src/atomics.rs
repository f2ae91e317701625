//! The atomics of this crate: the machine's, or a model's while one runs.
//!
//! Promise: `lock`, `marks`, `turn`, `bell` and `queue` are the same source in the product and
//! under the models: loom's, which knows every reordering, and shuttle's, which tries many
//! schedules.
//! Never: adds behaviour of its own.

#[cfg(not(model))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, fence};

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicU32, AtomicU64, fence},
    thread::yield_now,
};

#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::atomic::{AtomicU32, AtomicU64, fence},
    thread::yield_now,
};
