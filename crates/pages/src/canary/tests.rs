//! Switches work in their thread, and until their guard is dropped.

use std::cell::Cell;
use std::rc::Rc;

use super::*;

#[test]
fn an_invariant_is_off_in_one_thread_and_until_its_guard_is_dropped() {
    let off = switch_off(Invariant::WindowsTile);
    assert!(!holds(Invariant::WindowsTile) && holds(Invariant::LosersAreLocked));
    let elsewhere = std::thread::spawn(|| holds(Invariant::WindowsTile)).join();
    assert!(elsewhere.expect("it looks and ends"));
    drop(off);
    assert!(holds(Invariant::WindowsTile));
}

#[test]
fn a_hook_runs_at_each_point_but_not_within_itself() {
    let calls = Rc::new(Cell::new(0));
    let count = Rc::clone(&calls);
    let hooked = hook(move |point| {
        count.set(count.get() + 1);
        at(point);
    });
    at(Point::Fetching);
    at(Point::Evicting);
    drop(hooked);
    at(Point::Fetching);
    assert_eq!(calls.get(), 2);
}
