//! What happens between two steps of an attach.

use super::*;

const IDENTITY: [u8; 16] = *b"a log of my own.";

#[test]
fn of_two_hosts_that_attach_at_the_same_moment_one_does() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let medium = Medium::Pmem { path: folder.path().join("region") };
    let spec = RegionSpec { ring_bytes: 8192, roster_bytes: 1000, identity: IDENTITY };
    drop(Region::create(&medium, &spec).unwrap());
    let late = Region::found(&medium, RING).unwrap();
    late.newest().store(generation_word(&IDENTITY, late.generation), Ordering::Relaxed);
    let refused = late.note_attachment();
    assert!(matches!(refused, Err(AttachError::InUse { .. })), "{refused:?}");
    drop(late);
    assert_eq!(Region::attach(&medium).unwrap().generation(), 3);
}
