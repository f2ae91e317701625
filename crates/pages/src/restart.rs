//! What a restart has to know, and where it finds it.
//!
//! Promise: after any crash the state is that of the last stable record, from the log alone.
//! Never: reads a page.

pub(crate) mod analysis;
pub(crate) mod analysis_state;
pub(crate) mod bases;
pub(crate) mod checkpoint;
pub(crate) mod follower;
pub(crate) mod reread;
pub(crate) mod stale;
pub(crate) mod undo;
