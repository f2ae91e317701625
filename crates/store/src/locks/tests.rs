//! One name, few transactions: who gets a lock, who waits, and who is refused.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use holdfast_pages::PageNumber;

use super::*;

mod phantoms;
mod threads;

/// Longer than anything here takes.
const WATCHDOG: Duration = Duration::from_secs(120);

fn name(key: u8) -> Name {
    Name::of(PageNumber(1), &[key])
}

fn holders<const COUNT: usize>() -> [Holder; COUNT] {
    std::array::from_fn(|slot| Holder::new(Slot(slot as u16)))
}

/// A thread that waits for a lock, and what came of it. Returns when it is in the queue.
fn queue(
    locks: &Arc<Locks>,
    mut holder: Holder,
    key: u8,
    mode: Mode,
) -> JoinHandle<(Holder, Result<(), LockError>)> {
    let (slot, shared) = (holder.slot, Arc::clone(locks));
    let waiter = std::thread::spawn(move || {
        let locked = shared.lock(&mut holder, name(key), mode);
        (holder, locked)
    });
    while !locks.waits.has(slot) {
        std::thread::yield_now();
    }
    waiter
}

fn granted(waiter: JoinHandle<(Holder, Result<(), LockError>)>) -> Holder {
    let (holder, locked) = waiter.join().expect("the waiter does not panic");
    assert_eq!(locked, Ok(()));
    holder
}

#[test]
fn what_does_not_bear_one_another_is_not_held_at_once() {
    let (locks, [mut one, mut other]) = (Locks::default(), holders());
    assert!(locks.try_lock(&mut one, name(1), Mode::READ));
    assert!(locks.try_lock(&mut other, name(1), Mode::READ));
    assert!(!locks.try_lock(&mut one, name(1), Mode::CHANGE));
    assert!(locks.try_lock(&mut one, name(1), Mode::INSERT));
    assert!(!locks.try_lock(&mut other, name(1), Mode::READ_GAP));
    assert_eq!(locks.mode_of(&one, name(1)), Mode::READ.join(Mode::INSERT));
    assert_eq!(locks.mode_of(&other, name(1)), Mode::READ);
}

#[test]
fn a_released_name_is_free() {
    let (locks, [mut one, mut other]) = (Locks::default(), holders());
    assert!(locks.is_free(name(1)));
    for mode in [Mode::READ, Mode::CHANGE, Mode::SCAN] {
        assert!(locks.try_lock(&mut one, name(1), mode));
    }
    assert_eq!((&one.names[..], locks.is_free(name(1))), (&[name(1)][..], false));
    locks.release(&mut one);
    assert!(one.names.is_empty() && locks.is_free(name(1)));
    assert!(locks.try_lock(&mut other, name(1), Mode::CHANGE));
}

#[test]
fn who_waits_is_served_in_order() {
    let (locks, [mut one, other, third, mut fourth]) = (Arc::new(Locks::default()), holders());
    assert!(locks.try_lock(&mut one, name(1), Mode::READ));
    let other = queue(&locks, other, 1, Mode::CHANGE);
    let third = queue(&locks, third, 1, Mode::READ);
    // It would pass the one who waits to change, though not who reads.
    assert!(!locks.try_lock(&mut fourth, name(1), Mode::READ));
    assert!(locks.try_lock(&mut fourth, name(1), Mode::READ_GAP));
    locks.release(&mut one);
    let mut other = granted(other);
    assert_eq!(locks.mode_of(&other, name(1)), Mode::CHANGE);
    assert!(locks.waits.has(Slot(2)));
    locks.release(&mut other);
    assert_eq!(locks.mode_of(&granted(third), name(1)), Mode::READ);
}

#[test]
fn who_has_a_lock_and_asks_for_more_comes_first() {
    let (locks, [mut one, mut other, third]) = (Arc::new(Locks::default()), holders());
    assert!(locks.try_lock(&mut one, name(1), Mode::READ));
    assert!(locks.try_lock(&mut other, name(1), Mode::READ));
    let third = queue(&locks, third, 1, Mode::CHANGE);
    let other = queue(&locks, other, 1, Mode::CHANGE);
    assert!(locks.try_lock(&mut one, name(1), Mode::SCAN));
    locks.release(&mut one);
    let mut other = granted(other);
    assert!(locks.waits.has(Slot(2)));
    locks.release(&mut other);
    granted(third);
}

#[test]
fn two_that_want_to_change_what_both_read_are_a_deadlock() {
    let (locks, [mut one, mut other]) = (Arc::new(Locks::default()), holders());
    assert!(locks.try_lock(&mut one, name(1), Mode::READ));
    assert!(locks.try_lock(&mut other, name(1), Mode::READ));
    let other = queue(&locks, other, 1, Mode::CHANGE);
    assert_eq!(locks.lock(&mut one, name(1), Mode::CHANGE), Err(LockError::Deadlock));
    assert_eq!(locks.mode_of(&one, name(1)), Mode::READ);
    locks.release(&mut one);
    granted(other);
}

#[test]
fn a_circle_of_many_is_a_deadlock_for_the_last_alone() {
    const COUNT: u8 = 9;
    let locks = Arc::new(Locks::default());
    let mut holders: Vec<Holder> = holders::<{ COUNT as usize }>().into();
    for (key, holder) in holders.iter_mut().enumerate() {
        assert!(locks.try_lock(holder, name(key as u8), Mode::CHANGE));
    }
    let mut last = holders.pop().expect("there are some");
    let each = holders.into_iter().enumerate();
    let waiters = each.map(|(at, holder)| queue(&locks, holder, at as u8 + 1, Mode::READ));
    let waiters: Vec<_> = waiters.collect();
    assert_eq!(locks.lock(&mut last, name(0), Mode::READ), Err(LockError::Deadlock));
    locks.release(&mut last);
    for waiter in waiters.into_iter().rev() {
        locks.release(&mut granted(waiter));
    }
}

#[test]
fn a_wait_that_began_before_the_lock_it_waits_for_counts_as_well() {
    let (locks, [mut one, mut other, mut third]) = (Arc::new(Locks::default()), holders());
    assert!(locks.try_lock(&mut one, name(1), Mode::READ));
    assert!(locks.try_lock(&mut third, name(1), Mode::READ_GAP));
    assert!(locks.try_lock(&mut other, name(2), Mode::CHANGE));
    // Waits for the first alone, until the third reads the key, too.
    let other = queue(&locks, other, 1, Mode::CHANGE);
    assert!(locks.try_lock(&mut third, name(1), Mode::READ));
    locks.release(&mut one);
    assert_eq!(locks.lock(&mut third, name(2), Mode::READ), Err(LockError::Deadlock));
    locks.release(&mut third);
    granted(other);
}

#[test]
fn who_gives_up_lets_those_behind_him_pass() {
    let mut entry = Entry::default();
    assert!(entry.try_grant(Slot(0), Mode::READ));
    assert!(matches!(entry.ask(Slot(1), Mode::CHANGE), Answer::Queued(_)));
    assert!(matches!(entry.ask(Slot(2), Mode::READ), Answer::Queued(_)));
    assert!(entry.give_up(Slot(1)) && !entry.give_up(Slot(1)));
    assert_eq!(entry.mode_of(Slot(2)), Mode::READ);
}

#[test]
fn what_a_loser_has_is_not_waited_for() {
    let (locks, [mut one, mut loser, mut second]) = (Locks::default(), holders());
    locks.adopt(&mut loser, name(1));
    locks.adopt(&mut second, name(1));
    assert!(!locks.try_lock(&mut one, name(1), Mode::READ) && !locks.is_free(name(1)));
    assert_eq!(locks.lock(&mut one, name(1), Mode::READ), Err(LockError::Loser(Slot(1))));
    assert_eq!(locks.lock(&mut one, name(1), Mode::READ_GAP), Ok(()));
    locks.release(&mut loser);
    assert_eq!(locks.lock(&mut one, name(1), Mode::READ), Err(LockError::Loser(Slot(2))));
    locks.release(&mut second);
    assert_eq!(locks.lock(&mut one, name(1), Mode::READ), Ok(()));
}

#[test]
fn who_does_not_want_to_wait_is_told_why_he_would_have_to() {
    let (locks, [mut one, mut other, mut third]) = (Locks::default(), holders());
    assert_eq!(locks.lock_now(&mut one, name(1), Mode::CHANGE), Ok(()));
    assert_eq!(locks.lock_now(&mut other, name(1), Mode::READ), Err(LockError::Busy));
    locks.orphan(&one);
    assert_eq!(locks.lock_now(&mut other, name(1), Mode::READ), Err(LockError::Loser(Slot(0))));
    locks.adopt(&mut third, name(2));
    assert_eq!(locks.lock_now(&mut other, name(2), Mode::READ), Err(LockError::Loser(Slot(2))));
    assert!(other.names.is_empty());
}

#[test]
fn who_waits_for_a_transaction_that_nobody_runs_any_more_is_told() {
    let (locks, [mut one, other, third]) = (Arc::new(Locks::default()), holders());
    assert!(locks.try_lock(&mut one, name(1), Mode::READ));
    let other = queue(&locks, other, 1, Mode::CHANGE);
    let third = queue(&locks, third, 1, Mode::READ);
    locks.orphan(&one);
    let (_, locked) = other.join().expect("the waiter does not panic");
    assert_eq!(locked, Err(LockError::Loser(Slot(0))));
    // Who waited for the waiter alone does not wait any more.
    let mut third = granted(third);
    locks.release(&mut third);
    locks.release(&mut one);
    assert!(locks.is_free(name(1)));
}
