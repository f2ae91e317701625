//! What a child may say.

use super::numbers;

#[test]
fn numbers_are_read_and_words_are_refused() {
    assert_eq!(numbers("1 2.5 -3\n").unwrap(), [1.0, 2.5, -3.0]);
    assert!(numbers("").unwrap().is_empty());
    assert!(numbers("1 two").unwrap_err().to_string().contains("1 two"));
}
