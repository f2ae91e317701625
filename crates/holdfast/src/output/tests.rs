//! How often is spoken.

use super::*;

/// Those of `texts`, one every 20 ms, that are said, with the milliseconds at which they are.
fn said(texts: impl Iterator<Item = String>) -> Vec<(u64, String)> {
    let begun = Instant::now();
    let mut said: Vec<(u64, String)> = Vec::new();
    for (at_ms, text) in (0..).step_by(20).zip(texts) {
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let last = said.last().map(|(ms, text)| (text.clone(), at(*ms)));
        if is_worth_a_line(last.as_ref(), &text, at(at_ms)) {
            said.push((at_ms, text));
        }
    }
    said
}

#[test]
fn what_changes_is_said_once_a_second_and_what_does_not_every_ten_seconds() {
    let changing = said((0..6000).map(|number: u32| number.to_string()));
    assert_eq!(changing.len(), 120, "two minutes");
    let lasting = said(std::iter::repeat_n("it waits".to_owned(), 6000));
    assert_eq!(lasting.len(), 12, "{lasting:?}");
    assert_eq!(lasting[0].0, 0, "the first is said at once");
}
