//! Transactions on a model of a tree, step by step beside one another: what each of them read, it
//! would have read alone, in the order of their commits. The locks are those of a tree.

use std::collections::BTreeMap;
use std::ops::Bound::Included;

use holdfast_io::fake::Random;

use super::*;
use crate::locks::modes::GapMode;

const KEYS: u64 = 8;
const TRANSACTIONS: u16 = 4;
const STEPS: u32 = 400;
const SEEDS: u64 = 150;

/// What a transaction did and saw.
#[derive(Clone, Debug)]
enum Step {
    Get(u8, Option<u32>),
    Scan(u8, u8, Vec<(u8, u32)>),
    Put(u8, u32),
    Delete(u8),
}

/// A record that is there, or none of which only the key is left.
type Record = Option<u32>;

struct Running {
    holder: Holder,
    steps: Vec<Step>,
    /// What each changed record was before; nothing if there was no record.
    undo: Vec<(u8, Record)>,
}

struct World {
    random: Random,
    locks: Locks,
    /// Records of everybody. Key 0 is the fence at the low end.
    tree: BTreeMap<u8, Record>,
    running: Vec<Running>,
    /// What those that are committed would have made of it, one after the other.
    serial: BTreeMap<u8, u32>,
    with_gaps: bool,
}

impl World {
    fn new(seed: u64, with_gaps: bool) -> World {
        let running =
            |slot| Running { holder: Holder::new(Slot(slot)), steps: vec![], undo: vec![] };
        World {
            random: Random::new(seed),
            locks: Locks::default(),
            tree: BTreeMap::new(),
            running: (0..TRANSACTIONS).map(running).collect(),
            serial: BTreeMap::new(),
            with_gaps,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            let which = self.random.below(self.running.len() as u64) as usize;
            let (key, other) = (self.key(), self.key());
            match self.random.below(12) {
                0..=1 => self.get(which, key),
                2..=3 => self.scan(which, key.min(other), key.max(other)),
                4..=6 => self.put(which, key),
                7..=8 => self.delete(which, key),
                9 => self.purge(key),
                10 => self.commit(which)?,
                _ => self.abort(which),
            }
        }
        Ok(())
    }

    fn key(&mut self) -> u8 {
        1 + self.random.below(KEYS) as u8
    }

    fn lock(&mut self, which: usize, key: u8, mode: Mode) -> bool {
        let gap = if self.with_gaps { mode.gap } else { GapMode::None };
        let mode = Mode { key: mode.key, gap };
        self.locks.try_lock(&mut self.running[which].holder, name(key), mode)
    }

    fn before(&self, key: u8) -> u8 {
        self.tree.range(..key).next_back().map_or(0, |(key, _)| *key)
    }

    fn get(&mut self, which: usize, key: u8) {
        if self.lock(which, key, Mode::READ) {
            let found = self.tree.get(&key).copied().flatten();
            self.running[which].steps.push(Step::Get(key, found));
        }
    }

    fn scan(&mut self, which: usize, from: u8, to: u8) {
        let before = self.before(from);
        let range = (Included(from), Included(to));
        let records: Vec<(u8, Record)> =
            self.tree.range(range).map(|(key, at)| (*key, *at)).collect();
        let locked = self.lock(which, before, Mode::READ_GAP)
            && records.iter().all(|(key, _)| self.lock(which, *key, Mode::SCAN));
        if locked {
            let found = records.iter().filter_map(|(key, at)| at.map(|value| (*key, value)));
            self.running[which].steps.push(Step::Scan(from, to, found.collect()));
        }
    }

    fn put(&mut self, which: usize, key: u8) {
        let value = self.random.any() as u32;
        let locked = self.lock(which, key, Mode::CHANGE)
            && (self.tree.contains_key(&key) || self.lock_gap(which, key));
        if locked {
            self.change(which, key, Some(value));
            self.running[which].steps.push(Step::Put(key, value));
        }
    }

    /// Leave to put a key where none is. Whoever has read the gap has read both parts of it.
    fn lock_gap(&mut self, which: usize, key: u8) -> bool {
        let before = self.before(key);
        let gap = self.locks.mode_of(&self.running[which].holder, name(before)).gap;
        let has_read = matches!(gap, GapMode::Shared | GapMode::Both);
        self.lock(which, before, Mode::INSERT)
            && (!has_read || self.lock(which, key, Mode::READ_GAP))
    }

    fn delete(&mut self, which: usize, key: u8) {
        if self.lock(which, key, Mode::CHANGE) {
            if self.tree.contains_key(&key) {
                self.change(which, key, None);
            }
            self.running[which].steps.push(Step::Delete(key));
        }
    }

    fn change(&mut self, which: usize, key: u8, record: Record) {
        let old = self.tree.insert(key, record).flatten();
        self.running[which].undo.push((key, old));
    }

    /// Records of which only the key is left go when nobody has a lock on them.
    fn purge(&mut self, key: u8) {
        if self.tree.get(&key) == Some(&None) && self.locks.is_free(name(key)) {
            self.tree.remove(&key);
        }
    }

    fn abort(&mut self, which: usize) {
        for (key, old) in std::mem::take(&mut self.running[which].undo).into_iter().rev() {
            self.tree.insert(key, old);
        }
        self.end(which);
    }

    fn commit(&mut self, which: usize) -> Result<(), String> {
        for step in std::mem::take(&mut self.running[which].steps) {
            again(&step, &mut self.serial)?;
        }
        self.running[which].undo.clear();
        self.end(which);
        Ok(())
    }

    fn end(&mut self, which: usize) {
        self.running[which].steps.clear();
        self.locks.release(&mut self.running[which].holder);
    }
}

/// The checker: the step again, alone. What it saw then must be what it sees now.
fn again(step: &Step, serial: &mut BTreeMap<u8, u32>) -> Result<(), String> {
    let range = |from, to| serial.range((Included(from), Included(to)));
    let agrees = match step {
        Step::Get(key, found) => serial.get(key).copied() == *found,
        Step::Scan(from, to, found) => {
            range(*from, *to).map(|(key, at)| (*key, *at)).eq(found.iter().copied())
        }
        Step::Put(key, value) => {
            serial.insert(*key, *value);
            true
        }
        Step::Delete(key) => {
            serial.remove(key);
            true
        }
    };
    if agrees { Ok(()) } else { Err(format!("{step:?}, but alone there is {serial:?}")) }
}

#[test]
fn what_a_transaction_read_it_would_have_read_alone() {
    for seed in 0..SEEDS {
        World::new(seed, true).run().unwrap_or_else(|found| {
            panic!("seed {seed}: {found}: cargo test -p holdfast-store locks::tests::phantoms")
        });
    }
}

#[test]
fn without_locks_on_gaps_there_are_phantoms() {
    let failed = (0..SEEDS).filter(|seed| World::new(*seed, false).run().is_err()).count();
    assert!(failed > 0, "the checker notices phantoms");
}
