//! The command as its users meet it: the real binary, real mounts, real kills.
//!
//! Needs root and `/dev/fuse`. Each test has directories, a socket and a region of its own.

// In a test, and in what tests are made of, a failed step is the end of the test.
#![allow(clippy::unwrap_used)]
#![expect(clippy::print_stdout, reason = "a test says what it did, and how to repeat it")]

mod accepted;
mod advised;
mod asked;
mod astray;
mod attributes;
mod barrier;
mod beforehand;
mod bindfs;
mod block;
mod block_cache;
mod borders;
mod borders_drawn;
mod borders_of_homes;
mod bound;
mod btrfs;
#[path = "../../../front/tests/nbd/certificates.rs"]
mod certificates;
mod coherent;
mod configuration;
mod damaged_logs;
mod denials;
mod disk_kills;
mod disk_users;
mod disk_ways;
mod disks;
mod elsewhere;
mod ending;
mod fixture;
mod frozen_homes;
mod full_disks;
#[path = "../../../front/tests/vhost_user/guest.rs"]
#[expect(dead_code, reason = "one driver of guests for two crates, which use different parts")]
mod guest;
mod held_up;
mod hindered;
mod home_copies;
mod idle;
mod in_the_way;
mod installed;
mod json_told;
mod keeper_lost;
mod kept_drawn;
mod left_behind;
mod life;
#[path = "../../../front/tests/vhost_user/load.rs"]
mod load;
mod log_commands;
mod log_follow;
mod log_place;
mod log_reading;
mod meanwhile;
mod memory_bits;
mod memory_told;
mod mounted_disks;
mod names;
mod nbd;
mod nbd_tls;
mod no_room;
mod operators;
mod operators_drawn;
mod out_of_place;
mod plan_commands;
mod power;
mod random_signals;
mod refusals;
mod refused;
mod remedies;
mod rename_loop;
mod reserved;
mod run;
mod sectionless;
mod sections_drawn;
#[path = "../../../front/tests/vhost_user/seeds.rs"]
mod seeds;
mod served;
mod served_disks;
mod served_sections_drawn;
mod served_snapshots;
mod served_tables;
mod service_manager;
mod shutdown;
mod signals;
mod slow_disk;
mod sockets;
mod standby;
mod store_commands;
mod store_served;
mod strangers;
mod successors_drawn;
mod table_place;
mod table_stores;
mod trouble;
mod unread;
mod upgrades;
mod vital;
mod watchdog;
mod ways;
mod ways_in;
mod whose_keeper;
mod xfs_home;
