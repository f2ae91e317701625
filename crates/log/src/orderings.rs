//! Every memory order of the log's marks that another one relies on, by name.
//!
//! Promise: outside a model each constant is what its line says.
//! Never: is weakened in a product build: the `holdfast_weak_*` switches work only together with
//! `model`, where `loom.sh` sets one at a time and expects the model to fail.

use std::sync::atomic::Ordering;

/// Telling the reader's mark: the durable mark that allowed it can be seen.
pub(crate) const MARKED_TELL: Ordering =
    if cfg!(all(model, holdfast_weak_marked)) { Ordering::Relaxed } else { Ordering::Release };

/// Seeing the reader's mark: the durable mark that allowed it is seen, or a later one.
pub(crate) const MARKED_SEE: Ordering =
    if cfg!(all(model, holdfast_weak_marked_see)) { Ordering::Relaxed } else { Ordering::Acquire };

/// Whether what is released is looked at before what is durable.
pub(crate) const RELEASED_FIRST: bool = !cfg!(all(model, holdfast_weak_released_first));

/// Whether who writes looks when it is his turn, and not before.
pub(crate) const LOOKED_AT_IN_TURN: bool = !cfg!(all(model, holdfast_weak_in_turn));
