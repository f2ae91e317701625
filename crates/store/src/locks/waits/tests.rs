//! Random graphs of who waits for whom, against a search that follows every way.

use std::collections::BTreeSet;

use holdfast_io::fake::Random;
use holdfast_pages::PageNumber;

use super::*;

/// Whether `from` reaches itself, by following every way as far as it goes.
fn naive(edges: &BTreeMap<Slot, Vec<Slot>>, from: Slot) -> bool {
    let mut reached: BTreeSet<Slot> = edges.get(&from).into_iter().flatten().copied().collect();
    for _ in 0..edges.len() {
        let more: Vec<Slot> =
            reached.iter().filter_map(|at| edges.get(at)).flatten().copied().collect();
        reached.extend(more);
    }
    reached.contains(&from)
}

#[test]
fn whoever_would_close_a_circle_is_told_and_nobody_else() {
    let name = Name::of(PageNumber(1), b"");
    let mut told = [0; 2];
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let (waits, mut edges) = (Waits::default(), BTreeMap::new());
        for slot in (0..12).map(Slot) {
            let count = random.below(4);
            edges.insert(slot, (0..count).map(|_| Slot(random.below(12) as u16)).collect());
            let blockers = |slot, _| edges.get(&slot).cloned().unwrap_or_default();
            let may_wait = waits.begin(slot, name, blockers);
            assert_eq!(
                may_wait,
                !naive(&edges, slot),
                "seed {seed}: cargo test -p holdfast-store waits::"
            );
            if !may_wait {
                edges.remove(&slot);
            }
            told[usize::from(may_wait)] += 1;
        }
    }
    assert!(told.iter().all(|count| *count > 300), "{told:?}");
}

#[test]
fn who_does_not_wait_any_more_stands_in_nobodys_way() {
    let (waits, name) = (Waits::default(), Name::of(PageNumber(1), b""));
    let blockers = |slot: Slot, _| vec![Slot(1 - slot.0)];
    assert!(waits.begin(Slot(0), name, blockers));
    assert!(!waits.begin(Slot(1), name, blockers));
    waits.end(Slot(0));
    assert!(waits.begin(Slot(1), name, blockers));
}
