//! Leaves that have little left become one, and no gap that is locked goes with them.

use super::*;

/// What locks are on: every key, ghost or not, and where each leaf begins.
fn names(world: &World) -> BTreeSet<Vec<u8>> {
    let (mut names, mut from) = (BTreeSet::new(), Vec::new());
    loop {
        names.insert(from.clone());
        let note = |seen: Seen<'_>| {
            let (Seen::Key { key, .. } | Seen::Gap(key)) = seen;
            names.insert(key.to_vec());
            true
        };
        match world.tree().leaf(Seek::At(&from), note).expect("pages can be had") {
            LeafEnd::Next(next) => from = next,
            LeafEnd::Last | LeafEnd::Stopped => return names,
        }
    }
}

fn is_locked(key: &[u8]) -> bool {
    key.get(1) == Some(&b'4')
}

/// Pages that are given and neither the tree's nor free.
fn lost(world: &World) -> Vec<PageNumber> {
    let found = world.tree().check().expect("it is a tree");
    let (next, free) = world.numbers.unused();
    let free: BTreeSet<_> = free.into_iter().collect();
    assert!(free.is_disjoint(&found.pages), "a page is the tree's, and free");
    (1..next.get())
        .map(PageNumber)
        .filter(|it| !found.pages.contains(it) && !free.contains(it))
        .collect()
}

/// Grows a tree and lets it shrink again, a few times. Returns how many nodes went meanwhile.
fn tide(seed: u64, is_free: fn(&[u8]) -> bool) -> u64 {
    let mut random = Random::new(seed);
    let world = World::new([12, 400][seed as usize % 2]);
    let (mut model, mut merged, long) = (Contents::new(), 0, seed.is_multiple_of(3));
    for step in 0..1200 {
        let key = any_key(&mut random, long);
        let is_ebb = step / 150 % 2 == 1;
        let pages = || world.numbers.unused().1.len() as u64;
        if !is_ebb || random.chance(10) {
            change(&mut random, &world, &mut model, key);
            continue;
        }
        if matches!(world.tree().ghost(&key, BY), Ok(Changed::Done(_))) {
            model.remove(&key);
        }
        let (before, free) = (names(&world), pages());
        if random.chance(50) {
            world.tree().purge(&key, is_free).expect("pages can be had");
        } else {
            world.tree().tidy(&key, is_free).expect("pages can be had");
        }
        merged += pages().saturating_sub(free);
        let after = names(&world);
        let gone = before.iter().find(|name| is_locked(name) && !after.contains(*name));
        assert_eq!(gone, None, "a lock is on it");
    }
    assert_eq!(check(&world), Ok(model));
    assert_eq!(lost(&world), vec![]);
    merged
}

fn tides(seed: u64) {
    tide(seed, |key| !is_locked(key));
}

#[test]
fn leaves_merge_and_what_locks_are_on_stays() {
    each_seed("what_locks_are_on_stays", 8, tides);
    let merged: u64 = (1..=4).map(|seed| tide(seed, |key| !is_locked(key))).sum();
    assert!(merged > 15, "{merged} nodes went");
}

#[test]
fn a_gap_that_goes_in_spite_of_a_lock_would_be_noticed() {
    let ignored = || (1..=8).map(|seed| tide(seed, |_| true)).sum::<u64>();
    assert!(std::panic::catch_unwind(ignored).is_err());
}

#[test]
fn a_tree_that_is_emptied_is_one_page_again() {
    for long in [false, true] {
        let (world, mut random) = (World::new(64), Random::new(7));
        let mut keys: Vec<_> = (0..3000_u32).map(|at| format!("{at:05}").into_bytes()).collect();
        if long {
            keys.iter_mut().for_each(|key| key.resize(KEY_BYTES_MAX - 40, b'x'));
        }
        keys.iter().for_each(|key| put(&world, key, &[1; 20]));
        let grown = world.tree().check().expect("it is a tree").pages.len();
        while !keys.is_empty() {
            let key = keys.swap_remove(random.below(keys.len() as u64) as usize);
            assert!(matches!(world.tree().ghost(&key, BY), Ok(Changed::Done(_))));
            world.tree().purge(&key, |_| true).expect("pages can be had");
        }
        let found = world.tree().check().expect("it is a tree");
        assert!(grown > 10 && found.pages.len() == 1, "{grown} pages became {found:?}");
        assert_eq!(check(&world), Ok(Contents::new()));
        assert_eq!(lost(&world), vec![]);
    }
}

#[test]
fn threads_add_and_delete_while_leaves_merge() {
    let world = World::new(24);
    thread::scope(|scope| {
        for thread in 0..4_u8 {
            let world = &world;
            scope.spawn(move || {
                for round in 0..6_u32 {
                    let key = |at: u32| [&(at * 7919 % 150).to_be_bytes()[..], &[thread]].concat();
                    for at in 0..150 {
                        put(world, &key(at), &[round as u8; 200]);
                    }
                    for at in 0..150 {
                        assert_eq!(get(world, &key(at)), Some(vec![round as u8; 200]));
                        let gone = world.tree().ghost(&key(at), BY).expect("pages can be had");
                        assert!(matches!(gone, Changed::Done(_)));
                        world.tree().purge(&key(at), |_| true).expect("pages can be had");
                    }
                }
            });
        }
    });
    assert_eq!(check(&world), Ok(Contents::new()));
    assert_eq!(lost(&world), vec![]);
    let left = world.tree().check().expect("it is a tree").pages.len();
    assert!(left < 20, "{left} pages are left");
}
