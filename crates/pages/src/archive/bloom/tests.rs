//! What was put in is found, and most of what was not is not.

use super::*;

fn pages(step: u64) -> Vec<PageNumber> {
    (1..=2000).map(|page| PageNumber(page * step)).collect()
}

#[test]
fn no_page_is_missed() {
    for step in [1, 2, 64, 1 << 40] {
        let bloom = Bloom::of(&pages(step));
        assert!(pages(step).into_iter().all(|page| bloom.may_have(page)), "step {step}");
    }
}

#[test]
fn fewer_than_two_in_a_hundred_others_are_taken_for_members() {
    let bloom = Bloom::of(&pages(2));
    let others = (1..=20_000).map(|page| PageNumber(2 * page + 1));
    let wrong = others.filter(|page| bloom.may_have(*page)).count();
    assert!(wrong < 400, "{wrong} of 20000");
}

#[test]
fn a_filter_comes_back_from_its_bytes_and_nothing_else_is_one() {
    let bloom = Bloom::of(&pages(3));
    assert_eq!(Bloom::from_bytes(bloom.bytes().to_vec()), Some(bloom));
    assert_eq!(Bloom::from_bytes(Vec::new()), None);
    assert_eq!(Bloom::from_bytes(vec![0; 12]), None);
    assert!(!Bloom::of(&[]).may_have(PageNumber(1)));
}
