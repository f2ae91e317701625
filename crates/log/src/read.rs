//! What readers of a log use: of the ring, of the segments, of a log that another process writes.
//!
//! Promise: every frame that is given out was checked; damage is told with its place.
//! Never: writes.

pub(crate) mod ahead;
pub(crate) mod back;
pub(crate) mod cursor;
pub(crate) mod cuts;
pub(crate) mod damaged;
pub(crate) mod frames;
pub(crate) mod healed;
pub(crate) mod spans;
pub(crate) mod watch;
pub(crate) mod window;
