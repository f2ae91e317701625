//! Tests of the names of one node.

use super::{LISTED_MAX, ORPHANS, Place, Places};
use crate::names::place::compared;
use holdfast_io::tree::NodeId;

/// Numbers that look drawn, the same each time.
fn drawn(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

fn place(parent: u64, name: u64) -> Place {
    Place { parent: NodeId(parent), name: name.to_string().into_bytes().into() }
}

#[test]
fn names_of_one_node_are_what_a_list_of_them_would_be() {
    let (mut places, mut list, mut seed) = (Places::default(), Vec::<Place>::new(), 1);
    for round in 0..20_000_u64 {
        // They become many and few again.
        let reach = if round / 500 % 2 == 0 { 60 } else { 4 };
        let one = place(ORPHANS.0 + drawn(&mut seed) % 3, drawn(&mut seed) % reach);
        if drawn(&mut seed).is_multiple_of(2) {
            places.put(one.clone());
            if !list.contains(&one) {
                list.push(one.clone());
            }
        } else {
            let first = list.first().filter(|_| round % 3 == 0).cloned();
            let one = first.unwrap_or_else(|| one.clone());
            assert_eq!(places.remove(&one), list.contains(&one), "round {round}");
            list.retain(|other| *other != one);
        }
        assert_eq!(places.len(), list.len(), "round {round}");
        assert_eq!(places.first(), list.first(), "round {round}");
        assert!(places.iter().eq(&list), "round {round}");
        assert_eq!(places.contains(&one), list.contains(&one), "round {round}");
        assert_eq!(places.has(one.parent, &one.name), list.contains(&one), "round {round}");
        let orphan = list.iter().find(|place| place.parent == ORPHANS);
        assert_eq!(places.orphan(), orphan, "round {round}");
        let mut named: Vec<_> = places.named(&one.name).collect();
        let mut expected: Vec<_> = list.iter().filter(|place| place.name == one.name).collect();
        named.sort();
        expected.sort();
        assert_eq!(named, expected, "round {round}");
    }
}

#[test]
fn one_name_takes_no_more_memory_than_a_list_of_one() {
    assert_eq!(size_of::<Places>(), size_of::<Vec<Place>>());
    let places: Places = (0..LISTED_MAX as u64).map(|name| place(1, name)).collect();
    assert!(matches!(places, Places::Few(_)));
}

#[test]
fn a_name_of_thousands_costs_no_look_at_each_of_the_others() {
    let names = 20_000;
    let places: Places = (0..names).map(|name| place(1, name)).collect();
    let begun = compared();
    let mut left = places;
    for name in 0..names {
        // The oldest goes each time, where a list has to move up all others.
        let one = place(1, name);
        left.put(one.clone());
        assert!(left.has(NodeId(1), &one.name) && left.named(&one.name).next().is_some());
        assert!(left.remove(&one));
    }
    assert!(left.is_empty());
    let each = (compared() - begun) / names;
    assert!(each < 400, "{each} comparisons for one of {names} names");
}
