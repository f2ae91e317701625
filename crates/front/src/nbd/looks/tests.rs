//! How often it is looked.

use super::{Looks, VAIN_MAX};

/// Waits of which each is looked at when it is due, and found as `found` says.
fn looked(looks: &mut Looks, waits: u32, found: bool) -> u32 {
    let mut count = 0;
    for _ in 0..waits {
        if looks.are_due() {
            looks.note(found);
            count += 1;
        }
    }
    count
}

#[test]
fn a_quick_client_is_looked_for_each_time() {
    let mut looks = Looks { vain: 0, pause: Some(0) };
    assert_eq!(looked(&mut looks, 1000, true), 1000);
}

#[test]
fn a_slow_client_is_looked_for_less_and_less() {
    let mut looks = Looks { vain: 0, pause: Some(0) };
    let first = looked(&mut looks, 2048, false);
    assert!(first <= VAIN_MAX + 1, "{first} looks");
    assert_eq!(looked(&mut looks, 10 << VAIN_MAX, false), 10);
}

#[test]
fn a_client_that_gets_quick_is_soon_looked_for_each_time() {
    let mut looks = Looks { vain: 0, pause: Some(0) };
    looked(&mut looks, 10_000, false);
    let waits = 1 << VAIN_MAX;
    looked(&mut looks, waits, true);
    assert_eq!(looked(&mut looks, 100, true), 100);
}

#[test]
fn nobody_is_looked_for_on_a_single_core() {
    let mut looks = Looks { vain: 0, pause: None };
    assert_eq!(looked(&mut looks, 1000, true), 0);
}
