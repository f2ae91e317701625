//! The keeper: it holds what must outlive every front end, supervises them, and is asked through
//! its socket.
//!
//! Promise: what is configured is served, or it is told why not; what the keeper says of it is the
//! same as text and as JSON.
//! Never: knows what a process that it starts does inside: they hear orders, and report.
//!
//! Where to look: `keeper` starts front ends and the server, by `orders`, and is reached through
//! `control`; `report` is what `holdfast status` prints. `pulse` tells which of its processes live.

#![deny(unsafe_code)]

pub mod control;
pub mod keeper;
pub mod orders;
pub mod pulse;
pub mod report;
