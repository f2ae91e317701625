//! What cuts come to as figures: canaries of what may not be.
//!
//! Promise: one series that passes, and one for each thing that may not be.
//! Never: starts a database.

use super::*;

fn cut(lost: u64, holes: u64) -> Cut {
    let drained = Some(Duration::from_millis(40));
    Cut { acknowledged: 10, lost, holes, drained, ..Cut::default() }
}

fn met(cuts: &Cuts, id: &str) -> Option<bool> {
    let id = format!("power.postgres.cuts.{id}");
    let figures = cuts.figures();
    figures.iter().find(|figure| figure.id == id).expect(&id).met()
}

fn cuts(enough: Vec<Cut>, late: Vec<Cut>) -> Cuts {
    Cuts { name: "postgres", without_drain_lost: 1, enough, sweep: BTreeMap::from([(5, late)]) }
}

#[test]
fn what_a_deadline_that_is_too_short_takes_from_the_end_is_counted_and_has_no_goal() {
    let fine = cuts(vec![cut(0, 0), cut(0, 0)], vec![cut(7, 0)]);
    assert_eq!(met(&fine, "lost"), Some(true));
    assert_eq!(met(&fine, "after_5_ms.holes"), Some(true));
    assert_eq!(met(&fine, "after_5_ms.lost_from_the_end"), None);
}

#[test]
fn a_loss_although_there_was_time_misses_its_goal() {
    assert_eq!(met(&cuts(vec![cut(1, 0)], vec![]), "lost"), Some(false));
}

#[test]
fn a_hole_misses_its_goal_whatever_the_deadline() {
    assert_eq!(met(&cuts(vec![], vec![cut(3, 1)]), "after_5_ms.holes"), Some(false));
}
