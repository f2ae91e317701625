//! A tree holds what a map does, whatever becomes of its pages meanwhile.

mod check;
mod large;
mod merge;
mod purge;
mod scan;
pub(crate) mod world;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::thread;

use holdfast_io::fake::Random;
use holdfast_pages::{PageNumber, Slot, StageError};

use self::world::{Contents, Damage, World, check};
use super::*;
use crate::node::body::Body;
use crate::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

const BY: By = By::Update(Slot(3));

fn get(world: &World, key: &[u8]) -> Option<Vec<u8>> {
    let found = world.tree().get(key, |found| match found {
        Found::Value(value) => Some(value.to_vec()),
        Found::Ghost | Found::Gap(_) => None,
    });
    found.expect("pages can be had")
}

fn put(world: &World, key: &[u8], value: &[u8]) {
    let done = world.tree().insert(key, value, BY, |_| true).expect("pages can be had");
    assert!(matches!(done, Changed::Done(_)), "{done:?}");
}

/// One random change of tree and model, and the body that undoes it, if it was one.
fn change(
    random: &mut Random,
    world: &World,
    model: &mut Contents,
    key: Vec<u8>,
) -> Option<Vec<u8>> {
    let most = [10, 100, 1000, 2049][random.below(4) as usize];
    let mut value = vec![0; random.below(most) as usize];
    random.fill(&mut value);
    let (tree, there) = (world.tree(), model.contains_key(&key));
    let changed = match random.below(4) {
        0 | 1 if !there => tree.insert(&key, &value, BY, |_| true),
        0 => tree.ghost(&key, BY),
        _ => tree.replace(&key, BY, |_| Some(value.clone())),
    };
    match changed.expect("pages can be had") {
        Changed::Done(body) => {
            let ghost = matches!(Body::parse(&body), Ok(Body::Ghost(_)));
            if ghost {
                model.remove(&key)
            } else {
                model.insert(key, value)
            };
            Some(body)
        }
        Changed::Absent(gap) => {
            assert!(!there && gap <= key);
            None
        }
        other => panic!("{other:?}"),
    }
}

fn any_key(random: &mut Random, long: bool) -> Vec<u8> {
    let mut key = format!("{:03}", random.below(400)).into_bytes();
    if long {
        let bytes = usize::from(key[2] - b'0') * 80;
        key.resize(3 + bytes, b'x');
    }
    key
}

/// Transactions of some changes, a third of which are undone.
fn life(seed: u64) {
    let mut random = Random::new(seed);
    let world = World::new([6, 12, 400][seed as usize % 3]);
    let (mut model, long) = (Contents::new(), seed.is_multiple_of(2));
    for _ in 0..150 {
        let (before, mut done) = (model.clone(), Vec::new());
        for _ in 0..random.below(12) {
            let key = any_key(&mut random, long);
            done.extend(change(&mut random, &world, &mut model, key));
        }
        if random.chance(33) {
            while let Some(body) = done.pop() {
                world.tree().undo(&body, Slot(3)).expect("pages can be had");
            }
            model = before;
        }
        let key = any_key(&mut random, long);
        assert_eq!(get(&world, &key), model.get(&key).cloned());
    }
    assert_eq!(check(&world), Ok(model));
}

fn seeds(count: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    match number("HOLDFAST_SEED") {
        Some(seed) => vec![seed],
        None => (1..=count * number("HOLDFAST_SEEDS_FACTOR").unwrap_or(1).max(1)).collect(),
    }
}

/// Runs it with each seed, and says how to repeat the one that fails.
fn each_seed(test: &str, count: u64, run: fn(u64)) {
    for seed in seeds(count) {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            println!("replay: HOLDFAST_SEED={seed} cargo test -p holdfast-store {test}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn a_tree_holds_what_a_map_does_and_undoing_is_exact() {
    each_seed("undoing_is_exact", 12, life);
}

#[test]
fn keys_in_order_fill_their_leaves() {
    let world = World::new(400);
    let value = [7; 42];
    for key in 0..4000_u32 {
        put(&world, &key.to_be_bytes(), &value);
    }
    assert_eq!(check(&world).map(|contents| contents.len()), Ok(4000));
    let pages = world.numbers.take().get() - 1;
    let entry_bytes = 8 + 4 + 1 + 42;
    assert!(pages * 8192 < 4000 * entry_bytes * 5 / 4, "{pages} pages");
}

#[test]
fn threads_change_one_tree() {
    let world = World::new(16);
    thread::scope(|scope| {
        for thread in 0..4_u8 {
            let world = &world;
            scope.spawn(move || {
                for at in 0..400_u32 {
                    let key = [&(at * 7919 % 400).to_be_bytes()[..], &[thread]].concat();
                    put(world, &key, &[thread; 100]);
                    assert_eq!(get(world, &key), Some(vec![thread; 100]));
                }
            });
        }
    });
    assert_eq!(check(&world).map(|contents| contents.len()), Ok(1600));
}

#[test]
fn what_is_there_and_what_is_not_is_told() {
    let world = World::new(8);
    let tree = world.tree();
    put(&world, b"b", b"one");
    put(&world, b"d", b"two");
    let insert = |key: &[u8], gap: bool| tree.insert(key, b"v", BY, |_| gap).expect("it answers");
    assert_eq!(insert(b"b", true), Changed::Exists);
    assert_eq!(insert(b"c", false), Changed::Wait(b"b".to_vec()));
    assert_eq!(insert(b"a", false), Changed::Wait(b"".to_vec()));
    assert_eq!(tree.ghost(b"c", BY).expect("it answers"), Changed::Absent(b"b".to_vec()));
    assert!(matches!(tree.ghost(b"d", BY), Ok(Changed::Done(_))));
    assert!(tree.get(b"d", |found| found == Found::Ghost).expect("it answers"));
    assert!(tree.get(b"e", |found| found == Found::Gap(b"d")).expect("it answers"));
    assert_eq!(tree.ghost(b"d", BY).expect("it answers"), Changed::Absent(b"d".to_vec()));
}

#[test]
fn keys_and_values_of_the_largest_size_fit_and_larger_ones_are_refused() {
    let world = World::new(64);
    let key = |at: u8| [&[b'k'; KEY_BYTES_MAX - 1][..], &[at]].concat();
    for at in (0..40).rev().chain(40..80) {
        put(&world, &key(at), &[at; VALUE_BYTES_MAX]);
    }
    for at in 0..80 {
        let grown = world.tree().replace(&key(at), BY, |_| Some(vec![at; 3]));
        assert!(matches!(grown, Ok(Changed::Done(_))));
        let grown = world.tree().replace(&key(at), BY, |_| Some(vec![at; VALUE_BYTES_MAX]));
        assert!(matches!(grown, Ok(Changed::Done(_))));
    }
    assert_eq!(check(&world).map(|contents| contents.len()), Ok(80));
    let insert = |key: &[u8], value: &[u8]| world.tree().insert(key, value, BY, |_| true);
    let long = insert(&[0; KEY_BYTES_MAX + 1], b"");
    assert!(matches!(long, Err(TreeError::KeyTooLarge)));
    assert!(matches!(insert(b"", &[0; VALUE_BYTES_MAX + 1]), Err(TreeError::ValueTooLarge)));
    let grown = world.tree().replace(&key(0), BY, |_| Some(vec![0; VALUE_BYTES_MAX + 1]));
    assert!(matches!(grown, Err(TreeError::ValueTooLarge)));
}

/// A tree with two levels.
fn grown() -> World {
    let world = World::new(400);
    for key in 0..2000_u32 {
        put(&world, &(key * 7919 % 2000).to_be_bytes(), &[7; 42]);
    }
    world
}

/// The low fence becomes that of no page.
fn other_fence(contents: &mut [u8]) {
    contents[24] ^= 1;
}

#[test]
fn a_page_that_is_not_what_its_parent_says_is_told_and_noticed_by_the_checker() {
    let (world, page) = (grown(), PageNumber(3));
    assert!(check(&world).is_ok());
    let low = Node::of(&world.pool.read(page).expect("it is there"))
        .expect("a node")
        .shape()
        .low
        .to_vec();
    world.damage_for_good(page, other_fence);
    let found = world.tree().get(&low, |_| ());
    assert!(matches!(found, Err(TreeError::Corrupt { page: found, .. }) if found == page));
    assert!(check(&world).is_err());
}

#[test]
fn a_page_that_was_damaged_in_memory_is_made_again_of_its_records() {
    let children = |contents: &mut [u8]| *contents.last_mut().expect("there are bytes") ^= 1;
    let nothing = |contents: &mut [u8]| contents.fill(0);
    for (number, damage) in [(1, children as Damage), (1, nothing), (3, nothing), (3, other_fence)]
    {
        let (world, mut model) = (grown(), Contents::new());
        world.damage(PageNumber(number), damage);
        for key in 0..2000_u32 {
            let key = key.to_be_bytes();
            let changed = world.tree().replace(&key, BY, |_| Some(key.to_vec()));
            assert!(matches!(changed, Ok(Changed::Done(_))), "{changed:?}");
            model.insert(key.to_vec(), key.to_vec());
        }
        assert!(world.pool.thrown_away.load(Ordering::Relaxed) > 0);
        assert_eq!(check(&world), Ok(model));
    }
}

#[test]
fn a_change_that_no_record_says_any_more_has_not_happened() {
    for keys in 0..40 {
        let world = World::new(400);
        let insert = |key: u32| world.tree().insert(&key.to_be_bytes(), &[7; 2000], BY, |_| true);
        (0..keys).for_each(|key| assert!(insert(key).is_ok()));
        world.fail_log();
        let refused = insert(keys);
        assert!(matches!(refused, Err(TreeError::Stage(StageError::Poisoned(_)))), "{refused:?}");
        let found = world.tree().check().expect("it is a tree");
        assert_eq!(found.keys, keys.into());
        let (next, free) = world.numbers.unused();
        let known = found.pages.into_iter().chain(free).collect::<BTreeSet<_>>();
        assert!(known.into_iter().eq((1..next.get()).map(PageNumber)), "{keys} keys");
    }
}

#[test]
fn a_record_tells_of_a_value_what_differs() {
    let mut random = Random::new(1);
    for _ in 0..2000 {
        let any = |random: &mut Random, most: u64| -> Vec<u8> {
            (0..random.below(most)).map(|_| random.below(2) as u8).collect()
        };
        let (front, back) = (any(&mut random, 40), any(&mut random, 40));
        let (old, new) = (any(&mut random, 20), any(&mut random, 20));
        let whole = |middle: &[u8]| [&front, middle, &back].concat();
        let (old, new) = (whole(&old), whole(&new));
        let (at, gone, come) = change::difference(&old, &new);
        assert_eq!([&old[..at], come, &old[at + gone.len()..]].concat(), new);
        assert_eq!(&old[at..at + gone.len()], gone);
        assert!(gone.is_empty() || come.is_empty() || gone[0] != come[0]);
        assert!(gone.is_empty() || come.is_empty() || gone.last() != come.last());
    }
}
