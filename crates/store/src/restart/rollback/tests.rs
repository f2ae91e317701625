//! Changes of a model of a tree, undone.

use std::cell::RefCell;
use std::collections::BTreeMap;

use holdfast_io::fake::Random;
use holdfast_pages::PageNumber;

use super::*;
use crate::node::large::Large;

/// A tree whose changes are one byte of key and one of what was there before, and the records that
/// undoing them made.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) tree: RefCell<BTreeMap<u8, u8>>,
    /// Which transaction undid something, and which said that it has undone everything.
    pub(crate) undone: RefCell<Vec<Slot>>,
    pub(crate) aborted: RefCell<Vec<Slot>>,
    /// What lies elsewhere, the newest last.
    pub(crate) aside: RefCell<Vec<Vec<u8>>>,
    /// Undoes so many more, then fails once.
    pub(crate) fails_after: RefCell<Option<u32>>,
}

impl Model {
    /// Sets a key, and returns the body of the change. There is no key that has value 0.
    pub(crate) fn put(&self, key: u8, value: u8) -> [u8; 2] {
        [key, self.set(key, value)]
    }

    fn set(&self, key: u8, value: u8) -> u8 {
        let mut tree = self.tree.borrow_mut();
        let old = if value == 0 { tree.remove(&key) } else { tree.insert(key, value) };
        old.unwrap_or(0)
    }

    fn fail_if_asked(&self) -> Result<(), &'static str> {
        let left = self.fails_after.take();
        if left == Some(0) {
            return Err("asked for");
        }
        self.fails_after.replace(left.map(|left| left - 1));
        Ok(())
    }
}

impl Undoer for Model {
    type Error = &'static str;

    fn undo(&self, slot: Slot, body: &[u8]) -> Result<(), &'static str> {
        self.fail_if_asked()?;
        self.set(body[0], body[1]);
        self.undone.borrow_mut().push(slot);
        Ok(())
    }

    fn put_aside(&self, _: Slot, count: u64, told: &[u8]) -> Result<Aside, &'static str> {
        self.fail_if_asked()?;
        let opened = Opened::of(told).map_err(Model::unfit)?;
        assert_eq!(count, opened.bodies.len() as u64 + u64::from(opened.older.is_some()));
        let mut lies = self.aside.borrow_mut();
        lies.push(told.to_vec());
        let large = Large { bytes: told.len(), first: PageNumber(lies.len() as u64) };
        Ok(Aside { changes: opened.changes(), large })
    }

    fn bring_back(&self, _: Slot, aside: Aside) -> Result<Vec<u8>, &'static str> {
        self.fail_if_asked()?;
        let mut lies = self.aside.borrow_mut();
        assert_eq!(aside.large.first, PageNumber(lies.len() as u64), "the newest comes first");
        Ok(lies.pop().expect("it was put there"))
    }

    fn unfit(why: Unfit) -> &'static str {
        why.0
    }

    fn aborted(&self, slot: Slot) -> Result<(), &'static str> {
        self.aborted.borrow_mut().push(slot);
        Ok(())
    }
}

const SLOT: Slot = Slot(5);

#[test]
fn a_transaction_goes_back_to_any_of_its_savepoints() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (model, mut changes) = (Model::default(), Changes::default());
        let mut saved = vec![(changes.savepoint(), model.tree.borrow().clone())];
        for _ in 0..200 {
            match random.below(12) {
                0 => saved.push((changes.savepoint(), model.tree.borrow().clone())),
                2 if seed % 2 == 0 => changes.put_aside(SLOT, &model).unwrap(),
                1 => go_back(&mut random, &model, &mut changes, &mut saved, seed),
                _ => changes.push(&model.put(random.below(20) as u8, random.below(9) as u8)),
            }
        }
        changes.abort(SLOT, &model).unwrap();
        assert!(changes.is_empty() && model.tree.borrow().is_empty(), "seed {seed}");
        assert!(model.aside.borrow().is_empty(), "seed {seed}");
        assert_eq!(*model.aborted.borrow(), [SLOT]);
        assert_eq!(model.undone.borrow().len() as u64, changes.made);
    }
}

type Saved = (Savepoint, BTreeMap<u8, u8>);

fn go_back(
    random: &mut Random,
    model: &Model,
    changes: &mut Changes,
    saved: &mut Vec<Saved>,
    seed: u64,
) {
    saved.truncate(1 + random.below(saved.len() as u64) as usize);
    let (savepoint, tree) = saved.last().expect("the first one stays");
    assert_eq!(changes.check(*savepoint), Ok(()));
    changes.roll_back_to(*savepoint, SLOT, model).unwrap();
    assert_eq!(*model.tree.borrow(), *tree, "seed {seed}: cargo test -p holdfast-store rollback::");
}

#[test]
fn a_savepoint_behind_the_one_gone_back_to_is_gone() {
    let (model, mut changes) = (Model::default(), Changes::default());
    let first = changes.savepoint();
    changes.push(&model.put(1, 1));
    let second = changes.savepoint();
    changes.roll_back_to(first, SLOT, &model).unwrap();
    assert_eq!((changes.check(first), changes.check(second)), (Ok(()), Err(Gone)));
    changes.push(&model.put(1, 2));
    assert_eq!(changes.check(second), Err(Gone));
    assert_eq!(changes.check(changes.savepoint()), Ok(()));
}

#[test]
fn an_undo_that_failed_is_done_again_and_no_other() {
    for after in 0..3 {
        let (model, mut changes) = (Model::default(), Changes::default());
        (1..=3).for_each(|key| changes.push(&model.put(key, key)));
        *model.fails_after.borrow_mut() = Some(after);
        assert_eq!(changes.abort(SLOT, &model), Err("asked for"));
        assert_eq!(changes.iter().count(), 3 - after as usize);
        assert_eq!(changes.abort(SLOT, &model), Ok(()));
        assert_eq!((model.undone.borrow().len(), model.aborted.borrow().len()), (3, 1));
        assert!(model.tree.borrow().is_empty());
    }
}

#[test]
fn a_savepoint_means_the_same_changes_wherever_they_lie() {
    let (model, mut changes) = (Model::default(), Changes::new());
    (1..=3).for_each(|key| changes.push(&model.put(key, key)));
    let first = changes.savepoint();
    (4..=6).for_each(|key| changes.push(&model.put(key, key)));
    let (gone, all) = (changes.savepoint(), model.tree.borrow().clone());
    changes.put_aside(SLOT, &model).unwrap();
    assert_eq!((changes.bytes(), changes.check(first), changes.check(gone)), (0, Ok(()), Ok(())));
    changes.push(&model.put(7, 7));
    changes.roll_back_to(gone, SLOT, &model).unwrap();
    assert_eq!(*model.tree.borrow(), all);
    changes.roll_back_to(first, SLOT, &model).unwrap();
    changes.push(&model.put(8, 8));
    changes.put_aside(SLOT, &model).unwrap();
    (9..=12).for_each(|key| changes.push(&model.put(key, key)));
    assert_eq!((changes.check(first), changes.check(gone)), (Ok(()), Err(Gone)));
    changes.roll_back_to(first, SLOT, &model).unwrap();
    assert!(model.tree.borrow().keys().eq(&[1, 2, 3]));
}

#[test]
fn changes_are_found_again_as_they_were_pushed() {
    let mut changes = Changes::default();
    assert_eq!(changes.newest(), None);
    for body in [&b"one"[..], b"", b"three"] {
        changes.push(body);
        assert_eq!(changes.newest(), Some(body));
    }
    assert!(changes.iter().eq([&b"one"[..], b"", b"three"]));
}

#[test]
fn what_is_kept_in_memory_has_an_end() {
    let mut changes = Changes::default();
    changes.push(&vec![0; KEPT_BYTES_MAX - 10]);
    assert_eq!((changes.check_room(10), changes.check_room(11)), (Ok(()), Err(TooLarge)));
}
