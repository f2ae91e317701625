//! Ranges that are shown from both ends, and values that are looked at where they are.

use std::collections::BTreeMap;
use std::ops::Bound;

use holdfast_io::fake::Random;
use holdfast_store::Durability::Memory;
use holdfast_store::{KEPT_BYTES_MAX, KEY_BYTES_MAX, Store, Transaction, TransactionError, Tree};

use crate::power::with_seeds;
use crate::support::{machine, open};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn any_key(random: &mut Random) -> Vec<u8> {
    format!("{:02}", random.below(80)).into_bytes()
}

/// A key that is there or not, in a range, or none.
fn any_bound(random: &mut Random) -> Bound<Vec<u8>> {
    match random.below(4) {
        0 | 1 => Bound::Unbounded,
        2 => Bound::Included(any_key(random)),
        _ => Bound::Excluded(any_key(random)),
    }
}

/// Keys, some of them with values that have pages of their own.
fn filled(seed: u64) -> (Store, Tree, Model) {
    let (store, _) = open(&machine(seed));
    let (tree, mut random) = (store.tree("keys").expect("a tree"), Random::new(seed));
    let (mut model, mut one) = (Model::new(), store.begin());
    for _ in 0..random.below(70) {
        let most = if random.below(20) == 0 { 9000 } else { 1500 };
        let value = vec![random.any() as u8; random.below(most) as usize];
        let key = any_key(&mut random);
        one.put(&tree, &key, &value).expect("there is room");
        model.insert(key, value);
    }
    one.commit(Memory).expect("a log");
    (store, tree, model)
}

/// Changes some keys, which nobody else sees yet.
fn change(one: &mut Transaction<'_>, tree: &Tree, model: &mut Model, random: &mut Random) {
    for _ in 0..random.below(12) {
        let key = any_key(random);
        if random.chance(40) {
            one.delete(tree, &key).expect("there is room");
            model.remove(&key);
        } else {
            one.put(tree, &key, &[1; 700]).expect("there is room");
            model.insert(key, vec![1; 700]);
        }
    }
}

/// Goes through a range from both ends as chance will have it, beside a map.
fn go(seed: u64) -> u64 {
    let (store, tree, mut model) = filled(seed);
    let (mut random, mut steps) = (Random::new(seed), 0);
    let is_redo_only = random.chance(50);
    let mut one = if is_redo_only { store.begin_redo_only() } else { store.begin() };
    change(&mut one, &tree, &mut model, &mut random);
    for _ in 0..6 {
        let bounds = (any_bound(&mut random), any_bound(&mut random));
        let is_in = |key: &Vec<u8>| std::ops::RangeBounds::contains(&bounds, key);
        let mut wanted: Model = model
            .iter()
            .filter(|(key, _)| is_in(key))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let mut range = one.range(&tree, bounds.clone());
        loop {
            steps += 1;
            let key = any_key(&mut random);
            let (found, expected) = match random.below(20) {
                0 => {
                    range.seek(&key);
                    wanted.retain(|it, _| *it >= key);
                    continue;
                }
                1 => {
                    range.seek_back(&key);
                    wanted.retain(|it, _| *it <= key);
                    continue;
                }
                2..12 => (range.next(), wanted.pop_first()),
                _ => (range.next_back(), wanted.pop_last()),
            };
            let found = found.transpose().expect("pages");
            assert_eq!(found, expected, "seed {seed}, {bounds:?}");
            if found.is_none() {
                break;
            }
        }
        assert!(range.next().is_none() && range.next_back().is_none());
    }
    steps
}

#[test]
fn a_range_shows_each_key_once_from_either_end() {
    with_seeds(1..61, "ranges::a_range_shows", go);
}

#[test]
fn nothing_comes_where_a_range_was_read_from_either_end_and_it_comes_in_between() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    let mut one = store.begin();
    for number in 0..40_u8 {
        one.put(&tree, &[2 * number], &[7; 1000]).expect("there is room");
    }
    one.commit(Memory).expect("a log");
    let mut reading = store.begin();
    let mut range = reading.range::<&[u8]>(&tree, ..);
    assert_eq!(range.next().expect("a key").expect("pages").0, [0]);
    assert_eq!(range.next_back().expect("a key").expect("pages").0, [78]);
    for (key, may) in [(1_u8, false), (77, false), (99, false), (41, true)] {
        let mut other = store.begin_impatient();
        let put = other.put(&tree, &[key], b"");
        assert_eq!(put.is_ok(), may, "{key}: {put:?}");
        assert!(may || matches!(put, Err(TransactionError::Busy(_))), "{put:?}");
    }
}

#[test]
fn a_range_that_meets_a_lock_goes_on_when_it_is_gone() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    let (mut one, mut other) = (store.begin(), store.begin_impatient());
    one.put(&tree, b"m", b"").expect("there is room");
    let mut range = other.range::<&[u8]>(&tree, ..);
    assert!(matches!(range.next_back(), Some(Err(TransactionError::Busy(_)))));
    assert!(matches!(range.next(), Some(Err(TransactionError::Busy(_)))));
    one.commit(Memory).expect("a log");
    assert_eq!(range.next_back().expect("a key").expect("nobody is at it").0, b"m");
    assert!(range.next().is_none());
}

#[test]
fn the_keys_that_begin_alike_are_shown_from_both_ends() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    let mut one = store.begin();
    for key in [&b"a"[..], b"ab", b"abc", b"ab\xFF", b"ac"] {
        one.put(&tree, key, key).expect("there is room");
    }
    let mut range = one.range_prefix(&tree, b"ab");
    let mut key = |is_up: bool| {
        let found = if is_up { range.next() } else { range.next_back() };
        found.map(|found| found.expect("pages").0)
    };
    assert_eq!((key(true), key(false)), (Some(b"ab".to_vec()), Some(b"ab\xFF".to_vec())));
    assert_eq!((key(false), key(true)), (Some(b"abc".to_vec()), None));
}

#[test]
fn a_value_is_looked_at_wherever_it_is() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    let values = [vec![], vec![1; 100], vec![0xFE; 100], vec![3; 50_000]];
    let mut one = store.begin();
    for (key, value) in values.iter().enumerate() {
        one.put(&tree, &[key as u8], value).expect("there is room");
    }
    one.commit(Memory).expect("a log");
    for mut one in [store.begin(), store.begin_redo_only()] {
        for (key, value) in values.iter().enumerate() {
            let look = |found: &[u8]| found == &value[..];
            assert_eq!(one.get_with(&tree, &[key as u8], look).expect("pages"), Some(true));
        }
        assert_eq!(one.get_with(&tree, b"none", <[u8]>::len).expect("pages"), None);
        one.put(&tree, b"own", b"seen").expect("there is room");
        assert_eq!(one.get_with(&tree, b"own", <[u8]>::len).expect("pages"), Some(4));
        one.delete(&tree, b"own").expect("there is room");
        assert_eq!(one.get_with(&tree, b"own", <[u8]>::len).expect("pages"), None);
    }
}

#[test]
fn a_range_is_deleted_whatever_it_has_but_by_one_who_keeps_his_changes_to_himself() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    let keys = (KEPT_BYTES_MAX / KEY_BYTES_MAX + 100) as u64;
    let mut filling = store.begin();
    for at in 0..keys {
        let mut key = at.to_be_bytes().to_vec();
        key.resize(KEY_BYTES_MAX, 0);
        filling.put(&tree, &key, b"").expect("there is room");
    }
    filling.commit(Memory).expect("a log");
    let deleted = store.begin_redo_only().delete_range::<&[u8]>(&tree, ..);
    assert!(matches!(deleted, Err(TransactionError::TooLarge)), "{deleted:?}");
    for _ in 0..2 {
        let mut one = store.begin();
        assert_eq!(one.delete_range::<&[u8]>(&tree, ..).expect("there is room"), keys);
        one.abort().expect("there is room");
    }
}
