//! What is told of an attribute before and after the home has it.

use super::*;

fn value(found: Found) -> Option<Vec<u8>> {
    match found {
        Found::Here(value) => Some(value.to_vec()),
        Found::AtHome => Some(b"at home".to_vec()),
        Found::Nowhere => None,
    }
}

#[test]
fn the_newest_change_is_told_until_the_home_has_it() {
    let mut xattrs = Xattrs::default();
    xattrs.told(BTreeMap::from([(b"user.old"[..].into(), None), (b"user.gone"[..].into(), None)]));
    xattrs.set(b"user.old", Some(b"1"[..].into()), Lsn(10));
    xattrs.set(b"user.gone", None, Lsn(11));
    xattrs.set(b"user.new", Some(b"2"[..].into()), Lsn(20));
    assert_eq!(value(xattrs.find(b"user.old")), Some(b"1".to_vec()));
    assert_eq!(value(xattrs.find(b"user.gone")), None);
    xattrs.applied(Lsn(20));
    assert_eq!(value(xattrs.find(b"user.old")), Some(b"at home".to_vec()));
    assert_eq!(value(xattrs.find(b"user.new")), Some(b"2".to_vec()));
    assert_eq!(xattrs.names(), [b"user.new"[..].into(), b"user.old"[..].into()]);
    assert!(!xattrs.is_applied());
}

#[test]
fn a_list_stays_at_hand_when_the_home_has_it() {
    let mut xattrs = Xattrs::none_at_home();
    xattrs.set(ACCESS, Some(b"list"[..].into()), Lsn(1));
    xattrs.applied(Lsn(2));
    assert_eq!(value(xattrs.find(ACCESS)), Some(b"list".to_vec()));
}
