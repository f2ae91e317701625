//! Lists by hand; what a file system makes of them is compared in `tests/it/conformance.rs`.

use super::*;

fn bytes(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = VERSION.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&permissions.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

fn long() -> Vec<u8> {
    let nobody = u32::MAX;
    let named = [(OWNER, 7, nobody), (USER, 6, 1000), (OWNING_GROUP, 5, nobody)];
    bytes(&[&named[..], &[(MASK, 4, nobody), (OTHERS, 1, nobody)]].concat())
}

#[test]
fn a_list_survives_the_round_trip_and_tells_its_mode() {
    let acl = Acl::decode(&long()).unwrap();
    assert_eq!(acl.encode(), long());
    assert_eq!((acl.mode(), acl.is_mode()), (0o741, false));
    let short = Acl::decode(&bytes(&[(OWNER, 6, 0), (OWNING_GROUP, 4, 0), (OTHERS, 0, 0)]));
    assert_eq!(short.map(|acl| (acl.mode(), acl.is_mode())), Some((0o640, true)));
}

#[test]
fn a_mode_changes_the_mask_and_not_the_owning_group() {
    let mut acl = Acl::decode(&long()).unwrap();
    acl.set_mode(0o7620);
    assert_eq!((acl.mode(), acl.permissions(OWNING_GROUP), acl.permissions(MASK)), (0o620, 5, 2));
}

#[test]
fn what_is_handed_down_allows_no_more_than_the_one_who_makes_it() {
    let (acl, mode) = Acl::decode(&long()).unwrap().handed_down(0o4666);
    assert_eq!((acl.mode(), mode), (0o640, 0o4640));
}

#[test]
fn bytes_that_are_no_list_are_refused() {
    for cut in 0..long().len() {
        assert_eq!(Acl::decode(&long()[..cut]), None, "cut at {cut}");
    }
    let nobody = u32::MAX;
    let without_mask = [(OWNER, 7, 0), (USER, 6, 1), (OWNING_GROUP, 5, 0), (OTHERS, 1, 0)];
    let disordered = [(OTHERS, 7, 0), (OWNING_GROUP, 5, 0), (OWNER, 1, 0)];
    let twice = [(OWNER, 7, 0), (OWNER, 7, 0), (OWNING_GROUP, 5, 0), (OTHERS, 1, 0)];
    let many = [(OWNER, 8, 0), (OWNING_GROUP, 5, 0), (OTHERS, 1, 0)];
    let unnamed =
        [(OWNER, 7, 0), (USER, 6, nobody), (OWNING_GROUP, 5, 0), (MASK, 7, 0), (OTHERS, 1, 0)];
    for entries in [&without_mask[..], &disordered, &twice, &many, &unnamed] {
        assert_eq!(Acl::decode(&bytes(entries)), None, "{entries:?}");
    }
}
