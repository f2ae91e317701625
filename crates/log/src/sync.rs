//! What threads share: the machine's atomics and locks, or a model's while one runs.
//!
//! Promise: `needs` is the same source in the product and under loom.
//! Never: adds behaviour of its own.

#[cfg(not(model))]
pub(crate) use std::sync::{Mutex, atomic::AtomicU64};

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, atomic::AtomicU64};
