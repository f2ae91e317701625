//! Every memory order that another one relies on, by name.
//!
//! Promise: outside a model each constant is what its line says.
//! Never: is weakened in a product build: the `holdfast_weak_*` switches work only together with
//! `model`, where `loom.sh` sets one at a time and expects the model to fail.

use std::sync::atomic::Ordering;

/// Naming a cell in the map: what is in the cell is whole.
pub(crate) const MAP_NAME: Ordering =
    if cfg!(all(model, holdfast_weak_map_name)) { Ordering::Relaxed } else { Ordering::Release };

/// Seeing a cell named: it may be read.
pub(crate) const MAP_SEE: Ordering =
    if cfg!(all(model, holdfast_weak_map_see)) { Ordering::Relaxed } else { Ordering::Acquire };

/// Counting a swap of a map word: the word does not name the old cell any more.
pub(crate) const SWAP_COUNT: Ordering =
    if cfg!(all(model, holdfast_weak_swap_count)) { Ordering::Relaxed } else { Ordering::Release };

/// Seeing the count before a read: the words as of then, or later ones, are read.
pub(crate) const SWAP_SEE: Ordering =
    if cfg!(all(model, holdfast_weak_swap_see)) { Ordering::Relaxed } else { Ordering::Acquire };

/// Whether the gates of what is lent are held until it is not.
pub(crate) const LEND_HELD: bool = !cfg!(all(model, holdfast_weak_lend));

/// Whether the gates of a disk that stands still are held until it does not.
pub(crate) const STILL_HELD: bool = !cfg!(all(model, holdfast_weak_still));

/// Whether a fence stands between taking a cell that was in use and writing into it.
pub(crate) const REUSE_FENCED: bool = !cfg!(all(model, holdfast_weak_reuse));

/// Whether a fence stands between reading a cell and looking whether it was given up meanwhile.
pub(crate) const RECHECK_FENCED: bool = !cfg!(all(model, holdfast_weak_recheck));
