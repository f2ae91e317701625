//! Trees side by side.

use super::*;
use crate::rollback::Changes;
use crate::tree::tests::world::World;
use crate::tree::{By, Changed, Found};

const SLOT: Slot = Slot(2);

fn value(world: &World, root: PageNumber, key: &[u8]) -> Option<Vec<u8>> {
    let found = world.trees().tree(root).get(key, |found| match found {
        Found::Value(value) => Some(value.to_vec()),
        Found::Ghost | Found::Gap(_) => None,
    });
    found.expect("pages can be had")
}

fn insert(world: &World, root: PageNumber, key: &[u8], changes: &mut Changes) {
    let tree = world.trees().tree(root);
    let changed = tree.insert(key, root_value(root).as_slice(), By::Update(SLOT), |_| true);
    let Changed::Done(body) = changed.expect("pages can be had") else { panic!("it was there") };
    changes.push(&body);
}

#[test]
fn a_change_is_undone_in_the_tree_that_it_was_made_in() {
    let world = World::new(64);
    let roots = [NAMES_ROOT, world.trees().create().expect("there is room")];
    let (mut before, mut changes) = (Changes::default(), Changes::default());
    for root in roots {
        insert(&world, root, b"before", &mut before);
    }
    for key in 0..300_u32 {
        insert(&world, roots[key as usize % 2], &key.to_be_bytes(), &mut changes);
    }
    assert_eq!(value(&world, roots[1], &3_u32.to_be_bytes()), Some(root_value(roots[1])));
    let next = world.stream.next();
    changes.abort(SLOT, &world.trees()).expect("pages can be had");
    assert!(world.stream.next() > next);
    for root in roots {
        assert_eq!(value(&world, root, b"before"), Some(root_value(root)));
        assert!((0..300_u32).all(|key| value(&world, root, &key.to_be_bytes()).is_none()));
    }
}

#[test]
fn what_no_transaction_did_is_not_undone() {
    let world = World::new(8);
    for body in [&[][..], &[18], &[99]] {
        let undone = world.trees().undo(SLOT, body);
        assert!(matches!(undone, Err(TreeError::Corrupt { .. })), "{undone:?}");
    }
}

#[test]
fn the_value_of_a_name_is_a_root_or_is_told_to_be_none() {
    let root = PageNumber(300);
    assert_eq!(root_in(&root_value(root)), Ok(root));
    for wrong in [&[][..], &[0], &[1], &[7, 7], &[0x80], &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]] {
        assert!(root_in(wrong).is_err(), "{wrong:?}");
    }
}
