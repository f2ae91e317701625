//! What is no body is refused.

use super::*;

fn encoded(body: &Body<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    body.put(&mut out);
    out
}

#[test]
fn an_unknown_or_missing_op_is_refused() {
    assert!(Body::parse(&[]).is_err());
    for op in [0, 8, 15, 23, 128, 255] {
        assert_eq!(Body::parse(&[op, 1, 1, 1, 1]), Err(Unfit("no body begins so")), "{op}");
    }
}

#[test]
fn a_body_that_ends_within_its_fields_is_refused() {
    let spot = Spot { tree: PageNumber(300), place: 300, key: b"key" };
    let whole = encoded(&Body::Replace { spot, at: 300, old: b"old", new: b"" });
    for length in 0..whole.len() {
        assert!(Body::parse(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn a_body_that_goes_on_behind_its_fields_is_refused() {
    let spot = Spot { tree: PageNumber(1), place: 0, key: b"key" };
    for body in [Body::Ghost(spot), Body::Unghost(spot), Body::AdoptChild, Body::Clear] {
        let mut long = encoded(&body);
        long.push(0);
        assert_eq!(Body::parse(&long), Err(Unfit("a body is longer than what it says")));
    }
}

#[test]
fn page_0_is_in_no_body() {
    let (page, key) = (PageNumber(0), &b"key"[..]);
    let spot = Spot { tree: page, place: 0, key };
    for body in [Body::Ghost(spot), Body::Split { place: 1, page, key }] {
        assert_eq!(Body::parse(&encoded(&body)), Err(Unfit("0 is never a page")));
    }
}
