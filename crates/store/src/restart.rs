//! What transactions leave behind: numbers, pages, and changes that are to be undone.
//!
//! Promise: what was not committed is undone, once, however often it is begun.
//! Never: undoes what somebody still works on.

pub(crate) mod classical;
pub(crate) mod losers;
pub(crate) mod reclaim;
pub(crate) mod rollback;
pub(crate) mod slots;
