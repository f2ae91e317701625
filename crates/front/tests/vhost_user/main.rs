//! The vhost-user front end as a hypervisor and as a guest's driver see it: real shared memory,
//! real sockets, rings written by hand.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![expect(clippy::print_stdout, reason = "a test says what it did, and how to repeat it")]

mod damage;
mod disks;
mod guest;
mod hostile;
mod kills;
mod load;
mod log;
mod own_end;
mod requests;
mod seeds;
mod taken_away;
