//! Bodies, whole and cut.

use super::*;

#[test]
fn bodies_are_found_again_and_nothing_else_is() {
    let some = [&b"one"[..], b"", &[7; 300]];
    let mut bytes = Vec::new();
    some.iter().for_each(|body| put(body, &mut bytes));
    assert_eq!(all(&bytes), Some(some.to_vec()));
    let begins = [0, 4, 5, bytes.len()];
    for end in 0..bytes.len() {
        assert_eq!(all(&bytes[..end]).is_some(), begins.contains(&end), "cut at {end}");
    }
    assert_eq!(all(&[0xFF; 9]), None);
}
