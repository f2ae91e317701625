//! Trees side by side.

use super::*;
use crate::restart::rollback::Changes;
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

#[test]
fn every_page_is_a_trees_or_free_or_told_to_be_nobodys() {
    let (world, mut changes) = (World::new(400), Changes::default());
    let roots = [(); 3].map(|()| world.trees().create().expect("there is room"));
    for (root, name) in roots.iter().zip([b"a", b"b"]) {
        let tree = world.trees().tree(NAMES_ROOT);
        let named = tree.insert(name, &root_value(*root), By::Update(SLOT), |_| true);
        assert!(matches!(named, Ok(Changed::Done(_))));
    }
    for key in 0..300_u32 {
        insert(&world, roots[key as usize % 2], &key.to_be_bytes(), &mut changes);
    }
    let large = world.trees().tree(roots[0]).store(&[7; 20_000]).expect("there is room");
    let found = world.trees().check().expect("they are sound");
    let unreached = [4, 5, 6, 7].map(PageNumber);
    assert_eq!((found.trees, found.keys, found.ghosts), (3, 302, 0));
    assert_eq!(found.unreached, unreached);
    let next = world.numbers.unused().0;
    assert_eq!(found.pages + unreached.len() as u64, next.get() - 1);

    let tree = world.trees().tree(roots[0]);
    tree.insert(b"large", &large, By::Update(SLOT), |_| true).expect("there is room");
    tree.ghost(b"large", By::Update(SLOT)).expect("it is there");
    let found = world.trees().check().expect("they are sound");
    assert_eq!((found.ghosts, found.unreached), (1, vec![roots[2]]));
    tree.purge(b"large", |_| true).expect("pages can be had");
    let found = world.trees().check().expect("they are sound");
    assert_eq!((found.ghosts, found.unreached), (0, vec![roots[2]]));
}

#[test]
fn a_name_of_no_tree_is_told() {
    let world = World::new(8);
    let names = world.trees().tree(NAMES_ROOT);
    names.insert(b"name", b"", By::Update(SLOT), |_| true).expect("there is room");
    let found = world.trees().check();
    assert!(matches!(found, Err(TreeError::Corrupt { page: NAMES_ROOT, .. })), "{found:?}");
}
