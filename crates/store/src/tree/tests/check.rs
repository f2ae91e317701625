//! The check of a tree finds all of a sound one, and what is wrong with another.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_sound_tree_has_all_pages_that_were_made_for_it() {
    let world = grown();
    world.tree().ghost(&7_u32.to_be_bytes(), BY).expect("pages can be had");
    let checked = world.tree().check().expect("it is sound");
    let all: BTreeSet<_> = (1..world.numbers.unused().0.get()).map(PageNumber).collect();
    assert_eq!((checked.pages, checked.keys, checked.ghosts), (all, 1999, 1));
}

#[test]
fn a_tree_is_checked_while_it_changes() {
    let world = World::new(400);
    thread::scope(|scope| {
        let changes = scope.spawn(|| {
            (0..3000_u32).for_each(|key| put(&world, &(key * 7919 % 3000).to_be_bytes(), &[7; 99]));
        });
        while !changes.is_finished() {
            world.tree().check().expect("it is sound");
        }
    });
    assert_eq!(world.tree().check().expect("it is sound").keys, 3000);
}

/// Whether a tree is found unsound, and that page named, in which `damage` has changed a node.
fn is_found(number: u64, damage: Damage) -> bool {
    let (world, number) = (grown(), PageNumber(number));
    world.damage_for_good(number, damage);
    let found = world.tree().check();
    matches!(found, Err(TreeError::Corrupt { page, .. }) if page == number)
}

#[test]
fn a_damaged_page_is_named() {
    assert!(!is_found(1, |_| ()));
    for number in [1, 2, 5] {
        assert!(is_found(number, |bytes| bytes.fill(0)), "{number}");
        assert!(is_found(number, |bytes| bytes[60] ^= 1), "{number}");
        assert!(number == 1 || is_found(number, other_fence), "{number}");
    }
}
