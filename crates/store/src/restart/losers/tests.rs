//! Losers on a model of a tree.

use holdfast_pages::PageNumber;

use super::*;
use crate::locks::LockError;
use crate::locks::modes::Mode;
use crate::node::aside::Aside;
use crate::restart::rollback::tests::Model;

fn name_of(body: &[u8], each: &mut dyn FnMut(Name)) -> Result<(), Unfit> {
    let is_change = body.len() == 2;
    is_change.then(|| each(Name::of(PageNumber(1), &body[..1]))).ok_or(Unfit("not a change"))
}

fn name(key: u8) -> Name {
    Name::of(PageNumber(1), &[key])
}

/// Two losers on a tree: number 3 has set keys 1 and 2, number 9 key 3.
fn world() -> (Locks, Losers, Model) {
    let (locks, model) = (Locks::default(), Model::default());
    let changes = |keys: &[u8]| keys.iter().map(|key| model.put(*key, 7).to_vec()).collect();
    let found = [(Slot(3), changes(&[1, 2])), (Slot(9), changes(&[3]))];
    let losers = Losers::adopt(&found, &locks, name_of).unwrap();
    (locks, losers, model)
}

#[test]
fn what_losers_changed_is_locked_until_it_is_undone() {
    let (locks, losers, model) = world();
    let mut reader = Holder::new(Slot(0));
    assert_eq!(losers.slots(), [Slot(3), Slot(9)]);
    assert_eq!(locks.lock(&mut reader, name(2), Mode::READ), Err(LockError::Loser(Slot(3))));
    losers.roll_back(Slot(3), &locks, &model).unwrap();
    assert_eq!(locks.lock(&mut reader, name(2), Mode::READ), Ok(()));
    assert!(locks.is_free(name(1)) && !locks.is_free(name(3)));
    assert_eq!(losers.slots(), [Slot(9)]);
    assert!(model.tree.borrow().keys().eq(&[3]));
}

#[test]
fn losers_are_undone_one_a_step_until_none_is_left() {
    let (locks, losers, model) = world();
    assert_eq!(losers.step(&locks, &model), Ok(true));
    assert_eq!(*model.aborted.borrow(), [Slot(3)]);
    assert_eq!(losers.step(&locks, &model), Ok(true));
    assert_eq!(losers.step(&locks, &model), Ok(false));
    assert_eq!(*model.aborted.borrow(), [Slot(3), Slot(9)]);
    assert_eq!(*model.undone.borrow(), [Slot(3), Slot(3), Slot(9)]);
    assert!(model.tree.borrow().is_empty() && (1..=3).all(|key| locks.is_free(name(key))));
}

#[test]
fn a_loser_that_is_rolled_back_twice_is_undone_once() {
    let (locks, losers, model) = world();
    for _ in 0..2 {
        losers.roll_back(Slot(9), &locks, &model).unwrap();
    }
    assert_eq!((model.undone.borrow().len(), model.aborted.borrow().len()), (1, 1));
}

#[test]
fn a_loser_whose_undo_failed_stays_locked_and_is_undone_later() {
    let (locks, losers, model) = world();
    *model.fails_after.borrow_mut() = Some(1);
    assert!(losers.roll_back(Slot(3), &locks, &model).is_err());
    assert_eq!(losers.slots(), [Slot(3), Slot(9)]);
    assert!(!locks.is_free(name(1)) && !locks.is_free(name(2)));
    losers.roll_back(Slot(3), &locks, &model).unwrap();
    assert_eq!(*model.undone.borrow(), [Slot(3), Slot(3)]);
    assert!(locks.is_free(name(1)) && locks.is_free(name(2)));
}

#[test]
fn a_transaction_that_could_not_be_rolled_back_is_a_loser_of_this_process() {
    let (locks, losers, model) = (Locks::default(), Losers::default(), Model::default());
    let (mut holder, mut changes) = (Holder::new(Slot(4)), Changes::default());
    assert!(locks.try_lock(&mut holder, name(1), Mode::CHANGE));
    assert!(locks.try_lock(&mut holder, name(2), Mode::READ));
    changes.push(&model.put(1, 7));
    losers.add(holder, changes, &locks);
    let mut reader = Holder::new(Slot(0));
    assert_eq!(locks.lock(&mut reader, name(1), Mode::READ), Err(LockError::Loser(Slot(4))));
    losers.roll_back(Slot(4), &locks, &model).unwrap();
    assert_eq!(locks.lock(&mut reader, name(1), Mode::READ), Ok(()));
    assert!(locks.is_free(name(2)) && model.tree.borrow().is_empty());
}

#[test]
fn a_body_that_is_none_is_told() {
    let found = [(Slot(1), vec![b"too long".to_vec()])];
    let adopted = Losers::adopt(&found, &Locks::default(), name_of);
    assert_eq!(adopted.err(), Some(Unfit("not a change")));
}

#[test]
fn threads_that_meet_the_same_losers_undo_each_once() {
    const LOSERS: u16 = 40;
    let locks = Locks::default();
    let found: Vec<_> =
        (0..LOSERS).map(|slot| (Slot(slot), vec![vec![slot as u8, 0]; 3])).collect();
    let losers = Losers::adopt(&found, &locks, name_of).unwrap();
    let undone = Counts::default();
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let (locks, losers, undone) = (&locks, &losers, &undone);
            threads.spawn(move || meet_all(Slot(LOSERS + thread), locks, losers, undone));
        }
    });
    let all = (0..LOSERS).map(Slot).map(|slot| (slot, [3, 1]));
    assert!(undone.0.lock().unwrap().clone().into_iter().eq(all));
    assert!(losers.slots().is_empty());
}

/// How often each transaction undid something, and said that it is through.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<Slot, [u32; 2]>>);

impl Undoer for Counts {
    type Error = ();

    fn undo(&self, slot: Slot, _: &[u8]) -> Result<(), ()> {
        self.0.lock().unwrap().entry(slot).or_default()[0] += 1;
        Ok(())
    }

    fn put_aside(&self, _: Slot, _: u64, _: &[u8]) -> Result<Aside, ()> {
        Err(())
    }

    fn bring_back(&self, _: Slot, _: Aside) -> Result<Vec<u8>, ()> {
        Err(())
    }

    fn unfit(_: Unfit) {}

    fn aborted(&self, slot: Slot) -> Result<(), ()> {
        self.0.lock().unwrap().entry(slot).or_default()[1] += 1;
        Ok(())
    }
}

/// Reads every key, as a transaction does that meets losers.
fn meet_all(slot: Slot, locks: &Locks, losers: &Losers, undoer: &Counts) {
    let mut reader = Holder::new(slot);
    for key in 0..40 {
        while let Err(error) = locks.lock(&mut reader, name(key), Mode::READ) {
            let LockError::Loser(loser) = error else { panic!("nobody changes anything") };
            losers.roll_back(loser, locks, undoer).unwrap();
        }
    }
    locks.release(&mut reader);
}
