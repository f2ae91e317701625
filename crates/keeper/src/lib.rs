//! The keeper: it holds what must outlive every front end, supervises them, and is asked through
//! its socket.
//!
//! Promise: what is configured is served, or it is told why not; what the keeper says of it is the
//! same as text and as JSON.
//! Never: knows what a process that it starts does inside: they hear orders, and report.
//!
//! Where to look: `keeper` attaches volumes and ends them, and is reached through `control`;
//! `front_end` and `server` have front ends and the server live, by `orders`, and `life` is what
//! both have in common; `report` is what
//! `holdfast status` prints. `pulse` tells which of its processes live.

#![deny(unsafe_code)]

pub mod attach;
mod attached;
mod attempt;
pub mod control;
mod copies;
mod disks;
mod front_end;
pub mod handover;
mod heard;
mod held;
pub mod keeper;
mod kept;
mod kept_disks;
mod last_word;
pub mod left;
mod life;
pub mod listeners;
mod log_place;
pub mod memory;
pub mod orders;
mod pace;
mod part_names;
mod peers;
mod progress;
pub mod pulse;
mod remains;
pub mod report;
mod restart;
mod sectionless;
mod server;
mod settings;
mod signs;
mod spawn;
mod stall;
pub mod taken;
mod tcp_table;
mod upgrade;
pub mod whose;
