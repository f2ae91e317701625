//! What a ratio is taken against.

use super::{best, divided};
use crate::ledger::Ledger;

#[test]
fn the_best_peer_is_the_one_with_the_best_median() {
    let mut ledger = Ledger::default();
    for (name, run) in [("one", 12.0), ("other", 10.0), ("one", 6.0), ("other", 20.0)] {
        ledger.higher(format!("rate.{name}"), "per s", run);
    }
    let id = |name: &str| format!("rate.{name}");
    assert_eq!(best(&ledger, &["one", "absent", "other"], id), Some("other"));
    assert_eq!(best(&ledger, &["absent"], id), None);
}

#[test]
fn runs_without_a_counterpart_have_no_ratio() {
    assert_eq!(divided(&[6.0, 8.0], &[2.0, 4.0]), Some(vec![3.0, 2.0]));
    assert_eq!(divided(&[], &[]), None);
    assert_eq!(divided(&[1.0], &[1.0, 2.0]), None);
}
