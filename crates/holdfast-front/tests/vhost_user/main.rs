//! The vhost-user front end as a hypervisor and as a guest's driver see it: real shared memory,
//! real sockets, rings written by hand.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod damage;
mod disks;
mod guest;
mod log;
mod requests;
