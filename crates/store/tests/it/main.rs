//! A store as its users see it, on a machine that loses what was not synced.

// A test that unwraps says where it failed, and so does a helper of one.
#![allow(clippy::unwrap_used)]
// Seeds that failed, and how much was tried.
#![allow(clippy::print_stdout)]

mod archives;
mod backups;
mod basics;
mod blocked;
mod busy_backups;
mod classical;
mod damage;
mod examples;
mod faults;
mod forks;
mod four_ways;
mod full_disk;
mod great;
mod histories;
mod kills;
mod large_values;
mod life;
mod loads;
mod looks;
mod missing;
mod model;
mod power;
mod ranges;
mod reclaim;
mod redo_only;
mod refusals;
mod restarts;
mod scans;
mod served;
mod served_disks;
mod snapshot_lives;
mod snapshots;
mod space;
mod statistics;
mod support;
mod threads;
mod unfreed;
