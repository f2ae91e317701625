//! Canaries of the judgement on a cut.
//!
//! Promise: one cut that passes, and one for each thing that may not be.
//! Never: starts a database.

use super::*;

fn cut(lost: u64, holes: u64, complaint: &str) -> Cut {
    Cut { acknowledged: 10, lost, holes, complaint: complaint.into(), ..Cut::default() }
}

#[test]
fn a_lost_end_is_whole_and_a_hole_or_a_complaint_is_not() {
    assert!(cut(3, 0, "").is_whole());
    assert!(!cut(0, 1, "").is_whole());
    assert!(!cut(0, 0, "invalid page in block 49").is_whole());
}

#[test]
fn a_hole_misses_its_goal_and_a_lost_end_has_none() {
    let cuts = Cuts { bare: 2, cuts: vec![cut(3, 0, ""), cut(0, 1, "")] };
    let met: Vec<_> =
        cuts.figures("postgres").iter().map(|figure| (figure.value, figure.met())).collect();
    assert_eq!(met[2], (3.0, None));
    assert_eq!(met[3], (1.0, Some(false)));
    assert_eq!(met[5], (2.0, None));
}
