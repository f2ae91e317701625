//! What is said of a moment.

use super::Sample;

#[test]
fn what_a_process_says_of_a_moment_is_what_it_saw() {
    let bytes = [5.0, 6.0, 7.0, 8.0];
    let sample = Sample { at_s: 0.5, per_s: [1.0, 2.0, 3.0, 4.0], bytes, resident: 9.0 };
    assert_eq!(Sample::of(&sample.numbers()), Some(sample));
    assert_eq!(Sample::of(&[5.0, 6.0, 7.0, 8.0]), None);
    assert_eq!(Sample::of(&[]), None);
}
