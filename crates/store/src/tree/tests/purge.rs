//! What goes with a ghost, and what does not.

use super::*;

fn ghosts(world: &World) -> Vec<Vec<u8>> {
    let (mut ghosts, mut from) = (Vec::new(), Vec::new());
    loop {
        let note = |seen: Seen<'_>| {
            if let Seen::Key { key, ghost: true, .. } = seen {
                ghosts.push(key.to_vec());
            }
            true
        };
        match world.tree().leaf(Seek::At(&from), note).expect("pages can be had") {
            LeafEnd::Next(next) => from = next,
            LeafEnd::Last | LeafEnd::Stopped => return ghosts,
        }
    }
}

fn purges(seed: u64) {
    let mut random = Random::new(seed);
    let (world, mut model) = (World::new([8, 400][seed as usize % 2]), Contents::new());
    for _ in 0..400 {
        let key = any_key(&mut random, true);
        change(&mut random, &world, &mut model, key);
        if random.chance(10) {
            let key = any_key(&mut random, true);
            let before = ghosts(&world);
            let is_locked = |key: &[u8]| key[1] == b'4';
            let gone = world.tree().purge(&key, |key| !is_locked(key)).expect("pages can be had");
            let after = ghosts(&world);
            assert_eq!(before.len() - after.len(), gone);
            assert!(before.iter().filter(|key| is_locked(key)).all(|key| after.contains(key)));
            assert!(!after.contains(&key) || is_locked(&key));
        }
    }
    assert_eq!(check(&world), Ok(model));
}

#[test]
fn ghosts_that_are_free_go_and_nothing_else_does() {
    each_seed("nothing_else_does", 8, purges);
}

#[test]
fn a_leaf_whose_ghosts_went_takes_new_keys_without_a_split() {
    let world = World::new(64);
    let key = |at: u32| at.to_be_bytes();
    let pages = || world.numbers.unused().0;
    (0..3).for_each(|at| put(&world, &key(at), &[1; 2000]));
    let before = pages();
    for at in 3..200 {
        let gone = world.tree().ghost(&key(at - 2), BY).expect("pages can be had");
        assert!(matches!(gone, Changed::Done(_)));
        assert_eq!(world.tree().purge(&key(at), |_| true).expect("pages can be had"), 1);
        put(&world, &key(at), &[1; 2000]);
    }
    assert_eq!(pages(), before);
    assert_eq!(check(&world).map(|contents| contents.len()), Ok(3));
}
