//! Whose blocks a cache takes for right when the next user comes.

use holdfast_io::{Kind, Metadata};

use super::recorded::Recorded;
use crate::cache::{Block, Cache, CacheLayout, Home};
use crate::header::BLOCK_BYTES;

const LAYOUT: CacheLayout = CacheLayout { buckets: 1 };

/// A file of four bytes, or the device of that number.
pub(super) fn described(rdev: u64) -> Metadata {
    Metadata {
        kind: Kind::File,
        mode: 0o600,
        uid: 0,
        gid: 0,
        size_bytes: 4,
        allocated_bytes: 0,
        links: 1,
        inode: 3,
        device: 1,
        immutable: false,
        encrypted: false,
        append_only: false,
        rdev,
        accessed_ns: 0,
        modified_ns: -5,
        changed_ns: 6,
    }
}

/// Whether a block is found that one user left, by the next. The first one died or closed.
fn is_warm(first: &Home, closed: Option<&Home>, next: &Home) -> bool {
    let memory = Recorded::zeros(LAYOUT.area_bytes());
    LAYOUT.format(&memory, 7);
    let cache = Cache::open(memory, LAYOUT, 7, false);
    cache.begin(first);
    let mut block: Box<Block> = Box::new([0; BLOCK_BYTES]);
    let Err(miss) = cache.look(1, &mut block) else { panic!("a new cache is empty") };
    cache.fill(miss, 1, &[9; BLOCK_BYTES]);
    closed.into_iter().for_each(|home| cache.end(home));
    cache.begin(next);
    cache.look(1, &mut block).is_ok()
}

#[test]
fn after_a_death_the_same_home_with_the_same_pledge_is_warm() {
    let (file, device) = (described(0), described(9));
    let changed = Metadata { changed_ns: 7, size_bytes: 5, ..file };
    let other = Metadata { inode: 4, ..file };
    let first = Home::of(&file, 1);
    assert!(is_warm(&first, None, &first));
    assert!(is_warm(&first, None, &Home::of(&changed, 1)), "its user changed it");
    assert!(is_warm(&Home::of(&device, 1), None, &Home::of(&device, 1)));
    assert!(!is_warm(&first, None, &Home::of(&file, 2)), "used without the cache meanwhile");
    assert!(!is_warm(&first, None, &Home::of(&other, 1)));
}

#[test]
fn after_a_close_a_file_that_is_as_it_was_is_warm_and_a_device_never() {
    let (file, device) = (described(0), described(9));
    let first = Home::of(&file, 1);
    assert!(is_warm(&first, Some(&first), &first));
    assert!(is_warm(&first, Some(&first), &Home::of(&file, 2)), "pledges end with a close");
    for changed in [
        Metadata { inode: 4, ..file },
        Metadata { size_bytes: 5, ..file },
        Metadata { modified_ns: 0, ..file },
        Metadata { changed_ns: 7, ..file },
    ] {
        assert!(!is_warm(&first, Some(&first), &Home::of(&changed, 1)), "{changed:?}");
    }
    let first = Home::of(&device, 1);
    assert!(!is_warm(&first, Some(&first), &first));
}
