//! What is and is not accepted.

use super::*;

fn offer(minor: u32, features: u64) -> Init {
    Init { major: 7, minor, max_readahead_bytes: 131_072, features }
}

#[test]
fn only_offered_features_are_accepted() {
    let started = negotiate(&offer(45, init::HAS_RESEND | init::BIG_WRITES)).unwrap();
    assert_eq!(started.features, init::HAS_RESEND | init::BIG_WRITES);
}

#[test]
fn the_writeback_cache_and_locks_are_declined() {
    let started = negotiate(&offer(45, u64::MAX)).unwrap();
    let declined = [1, 4, 10, 16, 20]; // POSIX_LOCKS, EXPORT, FLOCK_LOCKS, WRITEBACK, ACL
    assert!(declined.iter().all(|bit| started.features & (1 << bit) == 0));
}

#[test]
fn a_kernel_of_another_version_is_refused() {
    assert_eq!(negotiate(&offer(27, u64::MAX)), Err(wire::EPROTO));
    assert_eq!(negotiate(&Init { major: 8, ..offer(0, 0) }), Err(wire::EPROTO));
}

#[test]
fn an_older_kernel_is_spoken_to_in_its_own_version() {
    assert_eq!(negotiate(&offer(31, 0)).unwrap().minor, 31);
    assert_eq!(negotiate(&offer(99, 0)).unwrap().minor, MINOR);
}
