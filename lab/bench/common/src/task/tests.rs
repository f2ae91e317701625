//! Words are a run, or are refused.

use super::*;

#[test]
fn a_run_is_what_the_words_ask_for_in_any_order() {
    let all = Task { out: "there".into(), quick: true, only: Some("a,b".into()) };
    let words = ["--quick", "--only", "a,b", "--out", "there"];
    assert_eq!(Task::parse("bench", &words).expect("a run"), all);
    let some = Task { out: "there".into(), ..Task::default() };
    assert_eq!(Task::parse("bench", &["--out", "there"]).expect("a run"), some);
    assert_eq!((all.effort(5, 1), some.effort(5, 1)), (1, 5));
}

#[test]
fn other_words_and_a_run_that_writes_nowhere_are_told_how_to_ask() {
    for words in [&[][..], &["--quick"], &["--out"], &["--out", "there", "--fast"]] {
        let refused = Task::parse("bench", words).expect_err("no run");
        assert!(refused.to_string().starts_with("usage: bench --out "), "{refused}");
    }
}
