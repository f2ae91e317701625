//! Nothing is counted twice, nothing is left behind.

use super::*;

#[test]
fn what_was_added_is_taken_once() {
    let counts = Counts::default();
    assert_eq!(counts.take().count(), 0);
    counts.add(READER.start, 2);
    counts.add(READER.end - 1, 1);
    counts.add(READER.start, 3);
    let taken: Vec<_> = counts.take().collect();
    assert_eq!(taken, [(READER.start, 5), (READER.end - 1, 1)]);
    assert_eq!(counts.take().count(), 0);
}

#[test]
#[should_panic(expected = "not the reader's")]
fn a_word_of_the_log_is_not_counted_in() {
    Counts::default().add(READER.start - 1, 1);
}
