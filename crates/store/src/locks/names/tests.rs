//! Names are spread evenly, and are what they were computed to be by other means.

use std::collections::BTreeSet;

use super::*;
use crate::node::body::Spot;

fn name(tree: u64, key: &[u8]) -> Name {
    Name::of(PageNumber(tree), key)
}

#[test]
fn a_name_is_the_same_in_every_process() {
    assert_eq!(name(1, b""), Name(0x0737_104A_0E9A_3456));
    assert_eq!(name(7, b"a key of more than sixteen bytes"), Name(0xEF8C_86C0_0697_796E));
}

#[test]
fn keys_that_differ_by_zeros_at_their_end_have_different_names() {
    let zeros = [0; 40];
    let names: BTreeSet<Name> = (0..=40).map(|bytes| name(1, &zeros[..bytes])).collect();
    assert_eq!(names.len(), 41);
}

#[test]
fn numbers_as_keys_fill_all_parts_about_evenly() {
    const PARTS: usize = 256;
    let mut filled = [0_u32; PARTS];
    let (mut names, mut low) = (BTreeSet::new(), BTreeSet::new());
    for number in 0..100_000_u64 {
        let name = name(3, &number.to_be_bytes());
        filled[name.part(PARTS)] += 1;
        names.insert(name);
        low.insert(name.0 as u32);
    }
    assert_eq!(names.len(), 100_000);
    assert!(filled.iter().all(|count| (250..550).contains(count)), "{filled:?}");
    // Of 32 bits about one in 43,000 is taken twice by chance.
    assert!(low.len() > 99_980, "{}", low.len());
}

#[test]
fn trees_have_names_of_their_own() {
    let names: BTreeSet<Name> = (1..10_000).map(|tree| name(tree, b"same")).collect();
    assert_eq!(names.len(), 9_999);
}

#[test]
fn a_change_has_the_name_of_its_key_wherever_its_entry_is() {
    let body = |change: Body<'_>| {
        let mut bytes = Vec::new();
        change.put(&mut bytes);
        bytes
    };
    for place in [0, 5] {
        let spot = Spot { tree: PageNumber(3), place, key: b"key" };
        for change in [Body::Ghost(spot), Body::Insert { spot, value: b"value" }] {
            assert_eq!(Name::of_change(&body(change)), Ok(name(3, b"key")));
        }
    }
    assert!(Name::of_change(&body(Body::AdoptChild)).is_err());
    assert!(Name::of_change(b"").is_err());
}
