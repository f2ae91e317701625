//! Stacks are what a naive model says, and what is new since a mark makes the old ones the new.

use std::collections::BTreeMap;

use holdfast_io::fake::Random;

use super::*;

type Model = BTreeMap<u16, Vec<Vec<u8>>>;

fn all(undo: &Undo) -> Model {
    let bodies = |stack: &Stack| stack.bodies().map(<[u8]>::to_vec).collect();
    undo.running().map(|(slot, stack)| (slot.0, bodies(stack))).collect()
}

/// Does the same to both, whatever that is.
fn change(undo: &mut Undo, model: &mut Model, random: &mut Random) {
    let slot = random.below(4) as u16;
    let stack = model.entry(slot).or_default();
    match random.below(10) {
        0 => {
            undo.end(Slot(slot));
            stack.clear();
        }
        1..4 if undo.is_empty(Slot(slot)) => assert!(stack.is_empty()),
        1..4 => {
            undo.pop(Slot(slot));
            stack.pop();
        }
        _ => {
            let body = vec![random.any() as u8; random.below(5) as usize];
            undo.push(Slot(slot), &body);
            stack.push(body);
        }
    }
    model.retain(|_, stack| !stack.is_empty());
}

#[test]
fn what_is_not_undone_is_there_and_what_is_new_makes_one_of_the_other() {
    for seed in 1..=50 {
        let mut random = Random::new(seed);
        let (mut undo, mut old, mut model) = (Undo::default(), Undo::default(), Model::new());
        for _ in 0..200 {
            change(&mut undo, &mut model, &mut random);
            assert_eq!(all(&undo), model, "seed {seed}");
            if random.chance(20) {
                for (slot, stack) in undo.changed() {
                    let bodies: Vec<_> = stack.bodies_above(stack.kept()).collect();
                    old.replace(slot, stack.kept(), &bodies);
                }
                undo.mark();
                assert_eq!((all(&old), undo.changed().count()), (all(&undo), 0), "seed {seed}");
            }
        }
    }
}

#[test]
fn what_came_and_went_since_a_mark_is_not_new() {
    let mut undo = Undo::default();
    undo.push(Slot(3), b"one");
    undo.mark();
    undo.push(Slot(3), b"two");
    undo.pop(Slot(3));
    undo.push(Slot(1), b"three");
    undo.end(Slot(1));
    assert_eq!(undo.changed().count(), 0);
    undo.pop(Slot(3));
    undo.push(Slot(3), b"one");
    let changed: Vec<_> = undo.changed().map(|(slot, stack)| (slot, stack.kept())).collect();
    assert_eq!(changed, [(Slot(3), 0)]);
}
