//! Numbers of transactions are given once.

use super::*;

#[test]
fn numbers_are_given_once_and_again_when_they_are_back() {
    let slots = Slots::without(&[]);
    assert_eq!([slots.take(), slots.take()], [Some(Slot(0)), Some(Slot(1))]);
    slots.give_back(Slot(0));
    assert_eq!([slots.take(), slots.take()], [Some(Slot(0)), Some(Slot(2))]);
}

#[test]
fn numbers_of_losers_are_not_given() {
    let slots = Slots::without(&[Slot(1), Slot(3)]);
    let given = [(); 4].map(|()| slots.take().map(|slot| slot.0));
    assert_eq!(given, [Some(0), Some(2), Some(4), Some(5)]);
}

#[test]
fn there_is_an_end_to_numbers() {
    let slots = Slots::without(&[Slot(u16::MAX)]);
    assert_eq!((0..u16::MAX).filter(|_| slots.take().is_some()).count(), usize::from(u16::MAX));
    assert_eq!(slots.take(), None);
    assert_eq!(Slots::without(&[]).take(), Some(Slot(0)));
}
