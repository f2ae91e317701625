//! What is and is not accepted.

use super::*;

fn offer(minor: u32, features: u64) -> Init {
    Init { major: 7, minor, max_readahead_bytes: 131_072, features }
}

fn agreed(offer: &Init) -> Result<Started, i32> {
    negotiate(offer, Cache::WriteThrough, true)
}

#[test]
fn only_offered_features_are_accepted() {
    let started = agreed(&offer(45, init::HAS_RESEND | init::BIG_WRITES)).unwrap();
    assert_eq!(started.features, init::HAS_RESEND | init::BIG_WRITES);
}

#[test]
fn the_writeback_cache_and_locks_are_declined() {
    let started = agreed(&offer(45, u64::MAX)).unwrap();
    let declined = [1, 4, 10, 16]; // POSIX_LOCKS, EXPORT, FLOCK_LOCKS, WRITEBACK
    assert!(declined.iter().all(|bit| started.features & (1 << bit) == 0));
}

#[test]
fn access_control_lists_are_accepted_with_all_that_they_need_or_not_at_all() {
    let accepted = |features| agreed(&offer(45, features)).unwrap().features;
    assert_eq!(accepted(LISTS), LISTS);
    for missing in [init::POSIX_ACL, init::DONT_MASK, init::SETXATTR_EXT] {
        assert_eq!(accepted(LISTS & !missing), 0);
    }
}

#[test]
fn a_kernel_of_another_version_is_refused() {
    assert_eq!(agreed(&offer(27, u64::MAX)), Err(wire::EPROTO));
    assert_eq!(agreed(&Init { major: 8, ..offer(0, 0) }), Err(wire::EPROTO));
}

#[test]
fn an_older_kernel_is_spoken_to_in_its_own_version() {
    assert_eq!(agreed(&offer(31, 0)).unwrap().minor, 31);
    assert_eq!(agreed(&offer(99, 0)).unwrap().minor, MINOR);
}

/// An open that nobody is told of would truncate nothing.
#[test]
fn an_open_truncates_only_where_it_is_told() {
    for opens in [true, false] {
        let started = negotiate(&offer(45, u64::MAX), Cache::WriteThrough, opens).unwrap();
        assert_eq!(started.features & init::ATOMIC_O_TRUNC != 0, opens);
    }
}

#[test]
fn shared_mappings_are_for_trees_that_nobody_else_writes() {
    for (cache, may) in
        [(Cache::Nowhere, false), (Cache::Direct, true), (Cache::WriteThrough, true)]
    {
        let started = negotiate(&offer(45, u64::MAX), cache, true).unwrap();
        assert_eq!(started.features & init::DIRECT_IO_ALLOW_MMAP != 0, may, "{cache:?}");
    }
}

#[test]
fn a_kernel_that_must_tell_of_opens_may() {
    assert!(can_do_without_opens(&offer(45, u64::MAX), Cache::WriteThrough));
    assert!(!can_do_without_opens(&offer(45, u64::MAX), Cache::Direct));
    let older = !init::NO_OPENDIR_SUPPORT;
    assert!(!can_do_without_opens(&offer(28, older), Cache::WriteThrough));
}
