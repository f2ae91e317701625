//! Reading records back: in order, the newest first, while a log grows, and of somebody else's log.
//!
//! Promise: every record that is given out was checked; damage is told with its place.
//! Never: writes.

pub(crate) mod back;
pub(crate) mod replay;
pub(crate) mod tail;
pub(crate) mod watch;
