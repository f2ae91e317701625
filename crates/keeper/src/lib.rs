//! The keeper: it holds what must outlive every front end, supervises them, and is asked through
//! its socket.
//!
//! Promise: what is configured is served, or it is told why not; what the keeper says of it is the
//! same as text and as JSON.
//! Never: knows what a process that it starts does inside: they hear orders, and report.
//!
//! Where to look: `keeper` attaches volumes (`attach`) and ends them, and is reached through
//! `control`. `supervisor` has what serves them live: each `front_end`, those of `disks`, and the
//! `server`, by `orders`; `life` is what they have in common. `kept` is what a service manager has
//! for the keeper that comes next, `listeners` are the sockets of disks. `report` is what
//! `holdfast status` prints, and `pulse` tells which of its processes live. `power` is what the
//! keeper knows of the power, and who has a lease because of it.

#![deny(unsafe_code)]

pub mod attach;
pub mod control;
pub mod handover;
pub mod keeper;
mod kept;
mod last_word;
pub mod left;
pub mod listeners;
pub mod memory;
pub mod orders;
mod power;
pub mod pulse;
pub mod report;
mod sectionless;
mod supervisor;
pub mod taken;
pub mod whose;
