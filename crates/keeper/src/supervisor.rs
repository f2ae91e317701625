//! The processes that serve: started, heard, replaced when they die or are upgraded.
//!
//! Promise: what is attached has a process that serves it, or it is told why not.
//! Never: touches a home, a log or a region: the processes do.

pub(crate) mod attached;
pub(crate) mod attempt;
pub(crate) mod copies;
pub(crate) mod disks;
pub(crate) mod front_end;
pub(crate) mod heard;
pub(crate) mod life;
pub(crate) mod log_place;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod restart;
pub(crate) mod server;
pub(crate) mod signs;
pub(crate) mod spawn;
pub(crate) mod stall;
pub(crate) mod upgrade;
