//! What stands for changes, as bytes and back.

use holdfast_pages::PageNumber;

use super::*;

const ASIDE: Aside =
    Aside { changes: 300, large: Large { bytes: 5000, first: PageNumber(70_000) } };

fn body_of(aside: &Aside) -> Vec<u8> {
    let mut body = Vec::new();
    aside.put(&mut body);
    body
}

#[test]
fn what_stands_for_changes_is_found_again_and_nothing_else_is() {
    let body = body_of(&ASIDE);
    assert_eq!(Aside::parse(&body), Ok(Some(ASIDE)));
    assert!((1..body.len()).all(|end| Aside::parse(&body[..end]).is_err()));
    assert!(Aside::parse(&[&body[..], &[0]].concat()).is_err());
    assert_eq!((Aside::parse(b""), Aside::parse(b"\x01rest")), (Ok(None), Ok(None)));
    for damaged in
        [Aside { changes: 0, ..ASIDE }, Aside { large: Large { bytes: 0, ..ASIDE.large }, ..ASIDE }]
    {
        assert!(Aside::parse(&body_of(&damaged)).is_err(), "{damaged:?}");
    }
}

#[test]
fn what_is_older_comes_first() {
    for older in [None, Some(ASIDE)] {
        let mut bytes = Vec::new();
        let bodies = vec![&b"\x01one"[..], b"\x02two"];
        put_parts(older, bodies.iter().copied(), &mut bytes);
        let opened = Opened::of(&bytes).expect("it was put so");
        assert_eq!(opened, Opened { older, bodies });
        assert_eq!(opened.changes(), 2 + older.map_or(0, |older| older.changes));
        assert!(Opened::of(&bytes[..bytes.len() - 1]).is_err());
    }
    assert!(Opened::of(b"").is_err());
}
