//! Which values are themselves.

use super::*;

#[test]
fn what_a_leaf_says_of_a_value_is_the_value() {
    for length in [0, 1, 2, 100, VALUE_BYTES_MAX - 2] {
        for first in [0, ESCAPE] {
            let value = vec![first; length];
            let stored = plain(&value).expect("it is short");
            assert_eq!(Stored::of(&stored), Ok(Stored::Plain(&value[..])));
            assert_eq!(stored.len() - length, if length > 0 && first == ESCAPE { 2 } else { 0 });
        }
    }
    assert!(plain(&[0; VALUE_BYTES_MAX]).is_some() && plain(&[0; VALUE_BYTES_MAX + 1]).is_none());
    assert!(plain(&[ESCAPE; VALUE_BYTES_MAX - 1]).is_none());
}

#[test]
fn where_a_large_value_is_comes_back_and_nothing_else_does() {
    let large = Large { bytes: LARGE_VALUE_BYTES_MAX, first: PageNumber(300) };
    let stored = large.stored();
    assert_eq!(Stored::of(&stored), Ok(Stored::Large(large)));
    assert_eq!(Stored::large_of(&stored), Some(large));
    assert_eq!(Stored::large_of(b"value"), None);
    let longer = [&stored[..], &[0]].concat();
    let too_large = Large { bytes: LARGE_VALUE_BYTES_MAX + 1, ..large }.stored();
    let wrong = [&stored[..2], &stored[..stored.len() - 1], &longer, &too_large];
    for wrong in wrong.into_iter().chain([&[ESCAPE][..], &[ESCAPE, 2], &[ESCAPE, LARGE, 0, 1]]) {
        assert!(Stored::of(wrong).is_err(), "{wrong:?}");
    }
}
