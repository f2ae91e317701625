//! A scan meets what a map has, both ways, while leaves split between its steps.

use std::ops::Bound::{Excluded, Included, Unbounded};

use super::*;

/// Goes on from leaf to leaf, and calls `between` after each.
fn scan(
    world: &World,
    from: Seek<'_>,
    mut each: impl FnMut(Seen<'_>) -> bool,
    mut between: impl FnMut(),
) {
    let up = matches!(from, Seek::At(_));
    let mut end = world.tree().leaf(from, &mut each).expect("pages can be had");
    while let LeafEnd::Next(key) = end {
        between();
        let next = if up { Seek::At(&key) } else { Seek::Below(&key) };
        end = world.tree().leaf(next, &mut each).expect("pages can be had");
    }
}

/// Everything that a scan met which is no ghost.
fn met(world: &World, from: Seek<'_>, between: impl FnMut()) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut met = Vec::new();
    let each = |seen: Seen<'_>| {
        if let Seen::Key { key, value, ghost: false } = seen {
            met.push((key.to_vec(), value.to_vec()));
        }
        true
    };
    scan(world, from, each, between);
    met
}

/// What a map has from there on, in the order of a scan.
fn wanted(model: &Contents, from: Seek<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    match from {
        Seek::At(key) => model.range::<[u8], _>((Included(key), Unbounded)).map(owned).collect(),
        Seek::Below(key) => {
            model.range::<[u8], _>((Unbounded, Excluded(key))).rev().map(owned).collect()
        }
        Seek::End => model.iter().rev().map(owned).collect(),
    }
}

/// A tree and its map after some changes.
fn grown(random: &mut Random, frames: usize, changes: u32) -> (World, Contents) {
    let (world, mut model) = (World::new(frames), Contents::new());
    for _ in 0..changes {
        let key = any_key(random, true);
        change(random, &world, &mut model, key);
    }
    (world, model)
}

fn scans(seed: u64) {
    let mut random = Random::new(seed);
    let (world, model) = grown(&mut random, [8, 400][seed as usize % 2], 400);
    for _ in 0..20 {
        let key = any_key(&mut random, true);
        for from in [Seek::At(&key), Seek::Below(&key), Seek::End, Seek::At(b"")] {
            assert_eq!(met(&world, from, || ()), wanted(&model, from), "{from:?}");
        }
    }
    assert_eq!(met(&world, Seek::Below(b""), || ()), vec![]);
}

/// Keys that are there all the time, among others that come meanwhile and split leaves.
fn scans_while_leaves_split(seed: u64) {
    let mut random = Random::new(seed);
    let (world, model) = grown(&mut random, 400, 200);
    for from in [Seek::At(b""), Seek::End, Seek::At(b"2"), Seek::Below(b"2")] {
        let come = |random: &mut Random| {
            for _ in 0..20 {
                let key = [&any_key(random, false)[..], b"-"].concat();
                let done = world.tree().insert(&key, &[1; 900], BY, |_| true);
                done.expect("pages can be had");
            }
        };
        let mut found = met(&world, from, || come(&mut random));
        assert!(found.is_sorted() || found.iter().rev().is_sorted(), "{from:?}");
        found.retain(|(key, _)| model.contains_key(key));
        assert_eq!(found, wanted(&model, from), "{from:?}");
    }
    assert!(check(&world).is_ok());
}

#[test]
fn a_scan_meets_what_a_map_has_from_there_on() {
    each_seed("from_there_on", 12, scans);
}

#[test]
fn a_scan_misses_nothing_and_meets_nothing_twice_while_leaves_split() {
    each_seed("while_leaves_split", 12, scans_while_leaves_split);
}

#[test]
fn whoever_has_the_gaps_that_a_scan_shows_knows_that_nothing_comes() {
    let mut random = Random::new(5);
    let (world, _) = grown(&mut random, 400, 300);
    for from in [Seek::At(b""), Seek::At(b"1"), Seek::Below(b"3"), Seek::End] {
        let mut names = Vec::new();
        let note = |seen: Seen<'_>| {
            let (Seen::Key { key, .. } | Seen::Gap(key)) = seen;
            names.push(key.to_vec());
            true
        };
        scan(&world, from, note, || ());
        let is_passed = |key: &[u8]| match from {
            Seek::At(from) => from <= key,
            Seek::Below(from) => key < from,
            Seek::End => true,
        };
        for new in (0..400).map(|_| [&any_key(&mut random, true)[..], b"+"].concat()) {
            let has = |gap: &[u8]| {
                assert!(
                    !is_passed(&new) || names.iter().any(|name| name == gap),
                    "{new:?} {gap:?}"
                );
                false
            };
            world.tree().insert(&new, b"", BY, has).expect("pages can be had");
        }
    }
}

#[test]
fn a_scan_stops_before_what_its_caller_has_no_lock_for() {
    let world = World::new(8);
    [b"b", b"d", b"f"].iter().for_each(|key| put(&world, *key, b"value"));
    let stop_at = |from: Seek<'_>, stop: Seen<'_>| {
        let mut shown = 0;
        let each = |seen: Seen<'_>| {
            shown += usize::from(seen != stop);
            seen != stop
        };
        (world.tree().leaf(from, each).expect("pages can be had"), shown)
    };
    let key = |key: &'static [u8]| Seen::Key { key, value: b"value", ghost: false };
    assert_eq!(stop_at(Seek::At(b"c"), Seen::Gap(b"b")), (LeafEnd::Stopped, 0));
    assert_eq!(stop_at(Seek::At(b"c"), key(b"f")), (LeafEnd::Stopped, 2));
    assert_eq!(stop_at(Seek::At(b"b"), key(b"a")), (LeafEnd::Last, 3));
    assert_eq!(stop_at(Seek::Below(b"f"), key(b"b")), (LeafEnd::Stopped, 1));
    assert_eq!(stop_at(Seek::End, Seen::Gap(b"")), (LeafEnd::Stopped, 3));
}
