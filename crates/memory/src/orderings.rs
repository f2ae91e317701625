//! Every memory order that another one relies on, by name.
//!
//! Promise: outside a model each constant is what its line says.
//! Never: is weakened in a product build: the `holdfast_weak_*` switches work only together with
//! `model`, where `loom.sh` sets one at a time and expects the model to fail.

use std::sync::atomic::Ordering;

/// Publishing the tail: the bytes below it are whole before it can be seen.
pub(crate) const TAIL_PUBLISH: Ordering =
    if cfg!(all(model, holdfast_weak_publish)) { Ordering::Relaxed } else { Ordering::Release };

/// Seeing the tail: the bytes below it may be read.
pub(crate) const TAIL_SEE: Ordering =
    if cfg!(all(model, holdfast_weak_tail_see)) { Ordering::Relaxed } else { Ordering::Acquire };

/// Moving `released`: whoever read the bytes below it has finished.
pub(crate) const RELEASED_STORE: Ordering =
    if cfg!(all(model, holdfast_weak_release)) { Ordering::Relaxed } else { Ordering::Release };

/// Seeing `released`: the bytes below it may be overwritten.
pub(crate) const RELEASED_SEE: Ordering = if cfg!(all(model, holdfast_weak_released_see)) {
    Ordering::Relaxed
} else {
    Ordering::Acquire
};

/// Taking the lock: everything its last holder did is seen.
pub(crate) const LOCK_TAKE: Ordering =
    if cfg!(all(model, holdfast_weak_lock)) { Ordering::Relaxed } else { Ordering::Acquire };

/// Giving the lock back: everything done under it can be seen by the next holder.
pub(crate) const LOCK_GIVE: Ordering =
    if cfg!(all(model, holdfast_weak_unlock)) { Ordering::Relaxed } else { Ordering::Release };

/// Whether a fence stands between publishing and looking for sleepers, and between announcing a
/// sleeper and looking for what was published. Without either, both may miss the other.
pub(crate) const BELL_FENCED: bool = !cfg!(all(model, holdfast_weak_bell));

/// Whether a fence stands between publishing and looking whose turn it is, and between taking a
/// turn and looking at what is published. Without either, an acknowledgement may be lost.
pub(crate) const LOOK_FENCED: bool = !cfg!(all(model, holdfast_weak_look));

/// Linking a request: it is whole before the head leads to it.
pub(crate) const QUEUE_PUT: Ordering =
    if cfg!(all(model, holdfast_weak_put)) { Ordering::Relaxed } else { Ordering::Release };

/// Taking the list: what it leads to is whole.
pub(crate) const QUEUE_STEAL: Ordering =
    if cfg!(all(model, holdfast_weak_steal)) { Ordering::Relaxed } else { Ordering::Acquire };

/// Saying that a response is there: it is whole.
pub(crate) const DONE_TELL: Ordering =
    if cfg!(all(model, holdfast_weak_done)) { Ordering::Relaxed } else { Ordering::Release };

/// Seeing that a response is there: it may be read.
pub(crate) const DONE_SEE: Ordering =
    if cfg!(all(model, holdfast_weak_done_see)) { Ordering::Relaxed } else { Ordering::Acquire };

/// Freeing a slot: its owner is done with what is in it.
pub(crate) const SLOT_FREE: Ordering =
    if cfg!(all(model, holdfast_weak_slot_free)) { Ordering::Relaxed } else { Ordering::Release };

/// Taking a slot: it may be filled.
pub(crate) const SLOT_TAKE: Ordering =
    if cfg!(all(model, holdfast_weak_slot_take)) { Ordering::Relaxed } else { Ordering::Acquire };
