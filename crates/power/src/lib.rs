//! Whether the machine goes on long enough, after the mains have failed, to bring home what is in
//! memory alone.
//!
//! A [`source`] tells how the machine is powered; [`state`] makes of that, and of what was proved,
//! whether memory may acknowledge what has to survive the power; a [`monitor`] does both again and
//! again; and a [`lease`] carries the answer to other processes. A lease ends by itself: whoever
//! hears nothing any more, because the source, the monitor or its process is gone or stands still,
//! acknowledges from the disk.
//!
//! Promise: everything unknown, late, garbled or contradictory means that memory may not.
//! Never: knows what a log or a volume is, or who asks.

mod deadline;
pub mod lease;
pub mod monitor;
mod nut;
pub mod reading;
pub mod source;
pub mod state;
