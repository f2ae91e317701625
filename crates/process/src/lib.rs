//! What each long-running process is made of: the keeper's, a front end, the server, and a host
//! that stands by.
//!
//! Promise: a process can be killed at any instruction; what it needs to go on is in the
//! descriptors that it inherits, the region and the log.
//! Never: reads arguments, or prints for people.
//!
//! Where to look: `serve` and `standby` run a keeper, `terms` has whose turn it is to serve.
//! `front` is a front end: of a volume (`attached`, with its cache, `cached`) or of a disk
//! (`disk_front`), for its users (`users`). `server` has logs, disks, `tables` and `snapshots`.

#![deny(unsafe_code)]

pub mod attached;
pub mod cached;
pub mod disk;
mod disk_front;
mod disks;
pub mod front;
mod leased;
mod life;
pub mod link;
pub mod parts;
pub mod serve;
pub mod server;
pub mod snapshots;
mod stale;
pub mod standby;
pub mod store_refused;
pub mod tables;
mod terms;
mod users;
