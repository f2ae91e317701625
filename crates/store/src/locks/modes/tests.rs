//! Every pair of modes, against tables written out.

use super::*;

const KEYS: [KeyMode; 3] = [KeyMode::None, KeyMode::Shared, KeyMode::Exclusive];
const GAPS: [GapMode; 4] = [GapMode::None, GapMode::Shared, GapMode::Insert, GapMode::Both];
/// Which pairs bear one another: a row and a column for each mode, in the order above.
const KEYS_BEAR: [&str; 3] = ["yyy", "yyn", "ynn"];
const GAPS_BEAR: [&str; 4] = ["yyyy", "yynn", "ynyn", "ynnn"];

fn said(table: &[&str], row: usize, column: usize) -> bool {
    table[row].as_bytes()[column] == b'y'
}

fn modes() -> impl Iterator<Item = ((usize, usize), Mode)> {
    let pairs = (0..KEYS.len()).flat_map(|key| (0..GAPS.len()).map(move |gap| (key, gap)));
    pairs.map(|(key, gap)| ((key, gap), Mode { key: KEYS[key], gap: GAPS[gap] }))
}

#[test]
fn each_pair_of_modes_is_as_the_tables_say() {
    for ((key, gap), one) in modes() {
        for ((other_key, other_gap), other) in modes() {
            let wanted = said(&KEYS_BEAR, key, other_key) && said(&GAPS_BEAR, gap, other_gap);
            assert_eq!(one.is_compatible(other), wanted, "{one:?} {other:?}");
        }
    }
}

#[test]
fn a_join_bears_exactly_what_both_of_its_parts_bear() {
    for (_, one) in modes() {
        for (_, other) in modes() {
            let join = one.join(other);
            assert_eq!(join, other.join(one));
            for (_, third) in modes() {
                let both = one.is_compatible(third) && other.is_compatible(third);
                assert_eq!(join.is_compatible(third), both, "{one:?} {other:?} {third:?}");
            }
        }
    }
}

#[test]
fn only_a_join_with_less_changes_nothing() {
    for (at, one) in modes() {
        for (other_at, other) in modes() {
            let gap = at.1 == 3 || other_at.1 == 0 || at.1 == other_at.1;
            assert_eq!(one.join(other) == one, at.0 >= other_at.0 && gap, "{one:?} {other:?}");
        }
    }
}

#[test]
fn a_key_may_be_changed_while_its_gap_is_read() {
    assert!(Mode::CHANGE.is_compatible(Mode::READ_GAP));
    assert!(Mode::CHANGE.is_compatible(Mode::INSERT));
    assert!(!Mode::SCAN.is_compatible(Mode::INSERT));
    assert!(!Mode::SCAN.is_compatible(Mode::CHANGE));
}
