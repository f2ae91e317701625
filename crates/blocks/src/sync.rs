//! What threads share: the machine's atomics and locks, or a model's while one runs.
//!
//! Promise: `gates`, `spares` and `disk` are the same source in the product and under loom.
//! Never: adds behaviour of its own, but that a lock whose holder panicked is taken: what these
//! locks protect is whole between any two statements.

use std::sync::{PoisonError, TryLockError};

#[cfg(not(model))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, fence},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, fence},
};

/// Takes the lock, unless somebody has it.
#[inline]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Takes the lock.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
