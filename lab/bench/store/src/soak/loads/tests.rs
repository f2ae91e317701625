//! That each store ends a load with what the model has, and that the model refuses anything else.

use holdfast_bench_common::place::Place;

use super::Load;
use crate::peers::{self, Change, Durability, Kind, Terms};
use crate::soak;

/// Transactions: enough for a window that has been cut twice.
const STEPS: usize = 560;

/// Without syncs, which would take most of the time and change nothing of what is there.
fn terms() -> Terms {
    Terms { durability: Durability::Kernel, ..soak::terms() }
}

fn kept(kind: &Kind, load: Load, whole: &Place) {
    let place = whole.folder(&format!("{}-{}", kind.name, load.name())).unwrap();
    let peer = (kind.open)(place.path(), &terms()).unwrap();
    let mut model = load.model();
    model.fill(&*peer).unwrap();
    let steps = if load == Load::Series { STEPS } else { STEPS / 10 };
    (0..steps).for_each(|_| model.step(&*peer).unwrap());
    model.check(&*peer).unwrap();
    peer.close().unwrap();

    let peer = (kind.open)(place.path(), &terms()).unwrap();
    model.check(&*peer).unwrap();
    let mut another = load.model();
    another.next = 1;
    another.come();
    assert!(another.check(&*peer).is_err());
    // The newest with another's value.
    let (newest, before) = (model.live.len() - 1, model.live[0]);
    let key = model.key(model.live[newest]);
    let changed = Change::Put(key, model.value(before));
    peer.entries().unwrap().change(vec![changed]).unwrap();
    assert!(model.check(&*peer).is_err());
    peer.close().unwrap();
}

#[test]
fn every_store_with_entries_ends_each_load_with_just_what_its_model_has() {
    let whole = Place::whole("bench-store-test-soak").unwrap();
    for kind in peers::all().filter(|kind| kind.has_entries) {
        Load::ALL.into_iter().for_each(|load| kept(kind, load, &whole));
    }
}
