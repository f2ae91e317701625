//! Blanking.
//!
//! Promise: one sample per kind of literal.
//! Never: reads a file.

use super::*;

#[test]
fn comments_strings_and_characters_are_blanked_and_code_stays() {
    assert_eq!(blank("a // {\nb"), "a     \nb");
    assert_eq!(blank("x(\"}\\\"\", '{')"), "x(     ,    )");
    assert_eq!(blank("r#\"{\"# y"), "       y");
    assert_eq!(blank("'\\'' /* { */ z"), "             z");
}

#[test]
fn a_lifetime_is_not_a_character() {
    assert_eq!(blank("fn f<'a>(x: &'a str)"), "fn f<'a>(x: &'a str)");
}

#[test]
fn a_word_that_ends_in_r_starts_no_raw_string() {
    assert_eq!(blank("for\"x\""), "for   ");
}
