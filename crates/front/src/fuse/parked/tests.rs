//! What waits is handed over in a fair order.

use super::*;

const HEAVY: Lane = Lane { user: Some(1001), holds_others: false };
const LIGHT: Lane = Lane { user: Some(1002), holds_others: false };

/// Hands over until nobody may go on, and tells whose it was and what.
fn handed_over(parked: &Parked, mut may: impl FnMut(Option<u32>) -> bool) -> Vec<(u32, u8)> {
    let mut order = Vec::new();
    parked.hand_over(&mut |user, message| {
        let goes = may(user);
        if goes {
            order.push((user.expect("a user"), message[0]));
        }
        goes
    });
    order
}

#[test]
fn users_take_turns_and_what_one_asked_for_keeps_its_order() {
    let parked = Parked::default();
    for number in 0..3 {
        parked.park(HEAVY, &[number]);
    }
    parked.park(LIGHT, &[9]);
    assert!(handed_over(&parked, |_| false).is_empty());
    let order = handed_over(&parked, |_| true);
    assert_eq!(order, [(1001, 0), (1002, 9), (1001, 1), (1001, 2)]);
    assert_eq!(parked.waits_of(HEAVY, 1), Waits::Never);
}

#[test]
fn who_has_to_wait_on_keeps_nobody_else_waiting() {
    let parked = Parked::default();
    parked.park(HEAVY, &[0]);
    parked.park(LIGHT, &[9]);
    assert_eq!(handed_over(&parked, |user| user == LIGHT.user), [(1002, 9)]);
    assert_eq!(parked.waits_of(HEAVY, 1), Waits::Behind);
    assert_eq!(parked.waits_of(LIGHT, 1), Waits::Never);
}

#[test]
fn one_user_leaves_as_much_room_for_what_others_ask_as_he_takes() {
    let parked = Parked::default();
    let message = vec![0; 1 << 20];
    while parked.waits_of(HEAVY, message.len()) != Waits::InPlace {
        parked.park(HEAVY, &message);
    }
    assert!(parked.queues().bytes <= BYTES_MAX / 2);
    assert_eq!(parked.waits_of(LIGHT, message.len()), Waits::Never);
}

#[test]
fn who_waits_for_requests_is_told_that_none_come_any_more() {
    let parked = Parked::default();
    parked.park(HEAVY, &[0]);
    assert!(parked.wait_for_some());
    parked.close();
    assert!(!parked.wait_for_some());
}

#[test]
fn what_others_wait_for_goes_before_what_its_user_has_waiting() {
    let parked = Parked::default();
    parked.park(HEAVY, &[0]);
    let soon = Lane { holds_others: true, ..HEAVY };
    assert_eq!(parked.waits_of(soon, 1), Waits::Never);
    parked.park(soon, &[7]);
    let mut first = true;
    let order = handed_over(&parked, |_| !std::mem::take(&mut first));
    assert_eq!(order, [(1001, 7)], "the other waits on");
}
