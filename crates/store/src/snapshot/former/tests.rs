//! Changes are taken back from what a page has, newest first.

use holdfast_pages::PageNumber;

use super::*;
use crate::node::body::Spot;

fn bytes(body: &Body<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    body.put(&mut bytes);
    bytes
}

fn spot() -> Spot<'static> {
    Spot { tree: PageNumber(3), place: 0, key: b"key" }
}

#[test]
fn a_key_is_what_it_was_before_whatever_became_of_it() {
    let insert = bytes(&Body::Insert { spot: spot(), value: b"one" });
    let replace = bytes(&Body::Replace { spot: spot(), at: 1, old: b"n", new: b"th" });
    let ghost = bytes(&Body::Ghost(spot()));
    let revive = bytes(&Body::Revive { spot: spot(), old: b"othe", new: b"new" });
    let all = [revive, ghost, replace, insert];
    let now = Former::Value(b"new".to_vec());
    let before = |count: usize| now.clone().before(&all[..count]);
    assert_eq!(before(0), Ok(Some(b"new".to_vec())));
    assert_eq!(before(1), Ok(None));
    assert_eq!(before(2), Ok(Some(b"othe".to_vec())));
    assert_eq!(before(3), Ok(Some(b"one".to_vec())));
    assert_eq!(before(4), Ok(None));
}

#[test]
fn a_change_that_was_not_made_to_it_is_told() {
    let replace = bytes(&Body::Replace { spot: spot(), at: 9, old: b"n", new: b"th" });
    let ghost = bytes(&Body::Ghost(spot()));
    for (former, body) in [
        (Former::Value(b"short".to_vec()), replace),
        (Former::Absent, ghost.clone()),
        (Former::Value(b"there".to_vec()), ghost),
        (Former::Absent, b"no body".to_vec()),
    ] {
        assert!(former.clone().before(&[body]).is_err(), "{former:?}");
    }
}
