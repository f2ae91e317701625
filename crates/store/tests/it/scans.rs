//! What scans show, and what others cannot do about it.

use std::collections::BTreeMap;
use std::ops::Bound;

use holdfast_io::fake::Random;
use holdfast_store::Durability::Memory;
use holdfast_store::{Direction, Store, Transaction, TransactionError, Tree};

use crate::support::{machine, open};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A store with these keys, whose values are so long that a leaf has few.
fn store(keys: &[&str]) -> (Store, Tree) {
    let (store, _) = open(&machine(1));
    let tree = store.tree("accounts").expect("a tree");
    let mut one = store.begin();
    for key in keys {
        one.put(&tree, key.as_bytes(), &[7; 1500]).expect("room");
    }
    one.commit(Memory).expect("a log");
    (store, tree)
}

fn keys(
    transaction: &mut Transaction<'_>,
    tree: &Tree,
    bounds: &Bounds,
    direction: Direction,
) -> Vec<Vec<u8>> {
    let scan = transaction.scan(tree, bounds.clone(), direction);
    scan.map(|found| found.expect("a page").0).collect()
}

fn between(low: &str, end: &str) -> Bounds {
    (Bound::Included(low.into()), Bound::Excluded(end.into()))
}

fn any_key(random: &mut Random) -> Vec<u8> {
    format!("{:02}", random.below(60)).into_bytes()
}

fn any_bound(random: &mut Random) -> Bound<Vec<u8>> {
    match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(any_key(random)),
        _ => Bound::Excluded(any_key(random)),
    }
}

/// Whether a map would take these bounds for a range.
fn is_range((low, end): &Bounds) -> bool {
    match (low, end) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Excluded(low), Bound::Excluded(end)) => low < end,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(end))
        | (Bound::Included(low), Bound::Excluded(end)) => low <= end,
    }
}

#[test]
fn a_scan_shows_what_a_map_has_in_the_range() {
    let (mut random, mut model) = (Random::new(1), Model::new());
    let (store, tree) = store(&[]);
    for _ in 0..300 {
        let mut one = store.begin();
        let (key, value) = (any_key(&mut random), vec![1; random.below(2000) as usize]);
        if random.chance(40) {
            assert_eq!(one.delete(&tree, &key).expect("room"), model.remove(&key).is_some());
        } else {
            one.put(&tree, &key, &value).expect("room");
            model.insert(key, value);
        }
        let bounds = (any_bound(&mut random), any_bound(&mut random));
        let mut wanted = Vec::new();
        if is_range(&bounds) {
            wanted.extend(model.range(bounds.clone()).map(|(key, _)| key.clone()));
        }
        assert_eq!(keys(&mut one, &tree, &bounds, Direction::Up), wanted, "{bounds:?}");
        wanted.reverse();
        assert_eq!(keys(&mut one, &tree, &bounds, Direction::Down), wanted, "{bounds:?}");
        one.commit(Memory).expect("a log");
    }
}

#[test]
fn nothing_comes_or_goes_where_a_scan_has_been() {
    for direction in [Direction::Up, Direction::Down] {
        let (store, tree) = store(&["b", "d", "f", "h", "j", "l", "n", "p"]);
        let mut one = store.begin();
        let found = keys(&mut one, &tree, &between("e", "k"), direction);
        assert_eq!(found.len(), 3);
        for key in ["e", "f", "g", "i", "j", "jj"] {
            let mut other = store.begin_impatient();
            let put = other.put(&tree, key.as_bytes(), b"");
            assert!(matches!(put, Err(TransactionError::Busy(_))), "{key}: {put:?}");
        }
        for key in ["a", "b", "c", "m", "n", "o", "p", "q"] {
            let mut other = store.begin_impatient();
            other.put(&tree, key.as_bytes(), b"").expect("nobody has been there");
        }
        assert_eq!(keys(&mut one, &tree, &between("e", "k"), direction), found);
    }
}

#[test]
fn who_scans_puts_keys_there_and_others_still_do_not() {
    let (store, tree) = store(&["b", "x"]);
    let mut one = store.begin();
    assert!(keys(&mut one, &tree, &between("c", "w"), Direction::Up).is_empty());
    assert!(one.insert(&tree, b"m", b"").expect("room"));
    for key in ["l", "n"] {
        let mut other = store.begin_impatient();
        let put = other.put(&tree, key.as_bytes(), b"");
        assert!(matches!(put, Err(TransactionError::Busy(_))), "{key}: {put:?}");
    }
    assert!(one.insert(&tree, b"l", b"").expect("room"));
    assert!(one.insert(&tree, b"n", b"").expect("room"));
}

#[test]
fn a_scan_does_not_pass_what_another_transaction_put() {
    let (store, tree) = store(&["b", "x"]);
    let (mut one, mut other) = (store.begin(), store.begin_impatient());
    assert!(one.insert(&tree, b"m", b"").expect("room"));
    let mut scan = other.scan(&tree, b"b".to_vec().., Direction::Up);
    assert!(matches!(scan.next(), Some(Err(TransactionError::Busy(_)))));
    assert!(matches!(scan.next(), Some(Err(TransactionError::Busy(_)))));
    one.commit(Memory).expect("a log");
    let found: Vec<_> = scan.map(|found| found.expect("nobody is at it").0).collect();
    assert_eq!(found, [b"b", b"m", b"x"]);
}

#[test]
fn keys_that_begin_alike_are_met_and_no_others_both_ways() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    let keys: [&[u8]; 7] = [b"", b"a", b"ab", b"ab\xFF", b"ac", b"\xFF", b"\xFF\xFFz"];
    let mut one = store.begin();
    keys.iter().for_each(|key| one.put(&tree, key, b"").expect("room"));
    for prefix in [&b""[..], b"a", b"ab", b"ab\xFF", b"b", b"\xFF", b"\xFF\xFF"] {
        let wanted: Vec<_> = keys.iter().filter(|key| key.starts_with(prefix)).collect();
        for direction in [Direction::Up, Direction::Down] {
            let found = one.scan_prefix(&tree, prefix, direction);
            let mut found: Vec<_> = found.map(|found| found.expect("pages").0).collect();
            if direction == Direction::Down {
                found.reverse();
            }
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{prefix:?} {direction:?}");
        }
    }
}

#[test]
fn values_of_several_keys_come_in_the_order_in_which_they_are_named() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    for mut one in [store.begin(), store.begin_redo_only()] {
        one.put(&tree, b"a", b"1").expect("room");
        one.put(&tree, b"b", b"2").expect("room");
        let found = one.get_many(&tree, &[&b"b"[..], b"none", b"a", b"b"]).expect("pages");
        let wanted = [Some(&b"2"[..]), None, Some(b"1"), Some(b"2")];
        assert_eq!(found, wanted.map(|value| value.map(<[u8]>::to_vec)));
        one.abort().expect("room");
    }
    assert!(store.begin().get_many::<&[u8]>(&tree, &[]).expect("nothing").is_empty());
}
