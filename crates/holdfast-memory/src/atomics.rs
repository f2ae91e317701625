//! The atomics of this crate: the machine's, or loom's while a model runs.
//!
//! Promise: `lock`, `marks` and `bell` are the same source in the product and under the model.
//! Never: adds behaviour of its own.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, fence};
