//! Promise: the judge sees each kind of loss.
//! Never: needs a guest.

use super::{Ledger, Verdict};
use crate::sentence::Found;

fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    for (writer, number) in [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)] {
        ledger.note(writer, number);
    }
    ledger
}

fn found(rows: [(u32, u64, u64, u64); 2]) -> [Found; 2] {
    rows.map(|(writer, highest, rows, wrong)| Found { writer, highest, rows, wrong })
}

#[test]
fn what_is_there_beyond_the_acknowledged_is_no_fault() {
    let verdict = ledger().judge(&found([(1, 4, 4, 0), (2, 2, 2, 0)]));
    assert_eq!(verdict, Verdict { acknowledged: 5, ..Verdict::default() });
    assert!(verdict.is_clean());
}

#[test]
fn a_lost_row_a_hole_and_a_wrong_row_are_each_seen() {
    let lost = ledger().judge(&found([(1, 2, 2, 0), (2, 2, 2, 0)]));
    assert!(lost.lost == 1 && !lost.is_clean());
    let hole = ledger().judge(&found([(1, 3, 2, 0), (2, 2, 2, 0)]));
    assert!(hole.holes == 1 && !hole.is_clean());
    let wrong = ledger().judge(&found([(1, 3, 3, 0), (2, 2, 2, 1)]));
    assert!(wrong.wrong == 1 && !wrong.is_clean());
}

#[test]
fn what_one_boot_found_the_next_may_not_miss() {
    let mut ledger = Ledger::default();
    ledger.adopt(&found([(1, 7, 7, 0), (2, 5, 5, 0)]));
    assert_eq!(ledger.judge(&found([(1, 6, 6, 0), (2, 5, 5, 0)])).lost, 1);
}
