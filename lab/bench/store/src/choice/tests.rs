//! What names stand for.

use super::{Choice, Part};
use crate::effort::{FLAT_BRANCHES, THREADS};
use crate::peers;

#[test]
fn without_a_name_all_is_measured() {
    let all = Choice::of(None).unwrap();
    assert_eq!(all.kinds().len(), peers::all().count());
    assert!(Part::ALL.into_iter().all(|part| all.has(part)) && all.restarts_postgres());
}

#[test]
fn parts_and_stores_are_chosen_by_name_and_nothing_else_is_one() {
    let some = Choice::of(Some("restart,fjall")).unwrap();
    assert_eq!((some.kinds().len(), some.kinds()[0].name), (1, "fjall"));
    assert!(some.has(Part::Restart) && !some.has(Part::Durable));
    assert!(!some.restarts_postgres());
    let postgres = Choice::of(Some("postgres")).unwrap();
    assert!(postgres.kinds().is_empty() && postgres.restarts_postgres());
    assert!(Choice::of(Some("fjall,nothing")).is_err());
}

#[test]
fn only_banks_that_are_used_are_loaded() {
    let known = |name| peers::known(name).unwrap();
    let ours = Choice::of(Some("flat")).unwrap();
    assert!(ours.needs(FLAT_BRANCHES, known("holdfast")));
    assert!(!ours.needs(FLAT_BRANCHES, known("fjall")));
    let scanning = Choice::of(Some("scanning")).unwrap();
    assert!(scanning.needs(FLAT_BRANCHES, known("holdfast")));
    let unsynced = Choice::of(Some("nondurable")).unwrap();
    assert!(unsynced.needs(THREADS[0], known("fjall")));
    assert!(!unsynced.needs(THREADS[1], known("fjall")));
}
