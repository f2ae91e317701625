//! Large values are values.

use std::collections::BTreeSet;

use holdfast_pages::FlushError;

use super::*;
use crate::LARGE_VALUE_BYTES_MAX;
use crate::restart::rollback::Changes;

fn any_value(random: &mut Random) -> Vec<u8> {
    let most = [10, 2049, 8200, 60_000][random.below(4) as usize];
    let mut value = vec![0; random.below(most) as usize];
    random.fill(&mut value);
    if random.chance(20) && !value.is_empty() {
        value[0] = 0xFE;
    }
    value
}

fn loaded(world: &World, key: &[u8]) -> Option<Vec<u8>> {
    let stored = get(world, key)?;
    Some(world.tree().load(&stored).expect("pages can be had"))
}

/// One random change of tree and model.
fn change_value(random: &mut Random, world: &World, model: &mut Contents) -> Option<Vec<u8>> {
    let (tree, key, value) = (world.tree(), vec![random.below(12) as u8], any_value(random));
    let there = model.contains_key(&key);
    let changed = match (there, random.below(3)) {
        (false, _) => {
            let stored = tree.store(&value).expect("there is room");
            model.insert(key.clone(), value.clone());
            tree.insert(&key, &stored, BY, |_| true)
        }
        (true, 0) => {
            model.remove(&key);
            tree.ghost(&key, BY)
        }
        (true, _) => {
            let stored = tree.store(&value).expect("there is room");
            model.insert(key.clone(), value.clone());
            tree.replace(&key, BY, |_| Some(stored.to_vec()))
        }
    };
    let Changed::Done(body) = changed.expect("pages can be had") else { panic!("it is as told") };
    Some(body)
}

/// Pages that were made and that neither the tree reaches nor anybody may use.
fn lost(world: &World) -> BTreeSet<PageNumber> {
    let (next, free) = world.numbers.unused();
    let reached = world.tree().check().expect("it is sound").pages;
    let all = (1..next.get()).map(PageNumber);
    all.filter(|page| !reached.contains(page) && !free.contains(page)).collect()
}

fn large_life(seed: u64) {
    let mut random = Random::new(seed);
    let (world, mut model) = (World::new([12, 400][seed as usize % 2]), Contents::new());
    for _ in 0..40 {
        let (before, mut changes) = (model.clone(), Changes::default());
        for _ in 0..random.below(6) {
            changes.push(&change_value(&mut random, &world, &mut model).expect("it is made"));
        }
        if random.chance(33) {
            changes.abort(Slot(3), &world.trees()).expect("pages can be had");
            model = before;
        } else {
            let done = changes.iter().try_for_each(|body| world.trees().let_go(body));
            done.expect("pages can be had");
        }
        world.tree().purge(b"", |_| true).expect("pages can be had");
        for key in 0..12 {
            assert_eq!(loaded(&world, &[key]), model.get(&vec![key]).cloned());
        }
        assert_eq!(lost(&world), BTreeSet::new());
    }
    check(&world).expect("pages are what their records make of them");
}

#[test]
fn values_of_all_sizes_come_change_go_and_come_back_and_no_page_is_lost() {
    each_seed("no_page_is_lost", 12, large_life);
}

#[test]
fn a_value_of_a_thousand_pages_is_kept_and_one_that_is_too_large_is_refused() {
    let world = World::new(8);
    let value: Vec<u8> = (0..8_u64 << 20).map(|at| ((at * 31) >> 7) as u8).collect();
    put(&world, b"key", &world.tree().store(&value).expect("there is room"));
    assert_eq!(loaded(&world, b"key"), Some(value));
    let too_large = vec![0; LARGE_VALUE_BYTES_MAX + 1];
    let larger = world.tree().store(&too_large);
    assert!(matches!(larger, Err(TreeError::ValueTooLarge)));
}

#[test]
fn a_value_that_is_not_whole_is_told_and_its_page_named() {
    let damages: [Damage; 3] =
        [|bytes| bytes[0] ^= 1, |bytes| bytes[8] ^= 1, |bytes| bytes[9] ^= 1];
    for damage in damages {
        let world = World::new(64);
        put(&world, b"key", &world.tree().store(&[7; 20_000]).expect("there is room"));
        let stored = get(&world, b"key").expect("it is there");
        world.damage_for_good(PageNumber(3), damage);
        for found in [world.tree().load(&stored).map(drop), world.tree().check().map(drop)] {
            assert!(matches!(found, Err(TreeError::Corrupt { .. })), "{found:?}");
        }
    }
}

#[test]
fn who_gets_no_pages_for_all_of_a_value_gives_those_back_that_he_has() {
    let world = World::new(8);
    let (next, _) = world.numbers.unused();
    world.fill_log();
    let refused = world.tree().store(&[7; 1 << 20]);
    assert!(matches!(refused, Err(TreeError::Flush(FlushError::Full(_)))), "{refused:?}");
    let (end, free) = world.numbers.unused();
    assert!(end > next && free.len() as u64 == end.get() - next.get(), "{next} {end} {free:?}");
}
