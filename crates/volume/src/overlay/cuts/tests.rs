//! Each cut counts until the home has it.

use super::*;

#[test]
fn a_later_and_longer_cut_counts_once_the_shorter_one_is_applied() {
    let mut cuts = Cuts::default();
    assert_eq!(cuts.valid_bytes(), u64::MAX);
    cuts.cut(50, Lsn(10));
    cuts.cut(60, Lsn(20));
    assert_eq!(cuts.valid_bytes(), 50);
    cuts.applied(Lsn(15));
    assert_eq!(cuts.valid_bytes(), 60);
    cuts.applied(Lsn(21));
    assert_eq!(cuts.valid_bytes(), u64::MAX);
}

#[test]
fn a_later_and_shorter_cut_counts_alone() {
    let mut cuts = Cuts::default();
    cuts.cut(50, Lsn(10));
    cuts.cut(40, Lsn(20));
    cuts.applied(Lsn(15));
    assert_eq!(cuts.valid_bytes(), 40);
}
