//! Snapshots of different ages beside transactions, in lives of chance.
//!
//! Promise: whatever a snapshot shows is compared with what was committed when it was taken.
//! Never: depends on time: a seed has one life.

use std::collections::BTreeSet;
use std::ops::Bound;

use holdfast_io::fake::Random;
use holdfast_pages::canary::{Invariant, switch_off};
use holdfast_store::{
    CommitError, Direction, Durability, Savepoint, Service, Snapshot, Store, Transaction,
    TransactionError, Tree,
};

use crate::model::{Contents, Writes, apply};
use crate::support::{factor, machine, open, settle, sound};

const TREES: [&str; 3] = ["one", "other", "third"];
const KEYS: u64 = 60;
/// Keys behind one of those that come and go.
const SHORT_MAX: u64 = 8;
const STEPS: u64 = 250;
const OPEN_MAX: usize = 3;
const SNAPSHOTS_MAX: usize = 4;

/// What there is, by tree.
type All = [Contents; TREES.len()];

/// A transaction that is open, and what it has done.
struct Open<'s> {
    transaction: Transaction<'s>,
    writes: Vec<(usize, Writes)>,
    savepoint: Option<(Savepoint, usize)>,
}

/// A snapshot, and what it has to show.
struct Taken<'s> {
    snapshot: Snapshot<'s>,
    shows: All,
    /// Keys that were changed and neither committed nor undone, by tree.
    running: BTreeSet<(usize, Vec<u8>)>,
}

/// What a life has come to.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    steps: u64,
    snapshots: u64,
    looks: u64,
    commits: u64,
    short: u64,
    ghosts: u64,
}

struct Life<'s> {
    store: &'s Store,
    trees: [Tree; TREES.len()],
    committed: &'s mut All,
    random: &'s mut Random,
    open: Vec<Open<'s>>,
    taken: Vec<Taken<'s>>,
    count: &'s mut Count,
}

fn key(at: u64) -> Vec<u8> {
    format!("{at:04}").into_bytes()
}

/// One that comes behind that, and does not stay.
fn short_key(at: u64, one: u64) -> Vec<u8> {
    format!("{at:04}-{one}").into_bytes()
}

/// Some are longer than a page, and leaves have few of the others.
fn any_value(random: &mut Random) -> Vec<u8> {
    let bytes = if random.chance(8) { 2100 + random.below(18_000) } else { 8 + random.below(900) };
    let mut value = vec![random.below(256) as u8; bytes as usize];
    value[..8].copy_from_slice(&random.any().to_le_bytes());
    value
}

impl<'s> Life<'s> {
    fn step(&mut self) -> Result<(), String> {
        self.count.steps += 1;
        match self.random.below(100) {
            0..8 if self.open.len() < OPEN_MAX => {
                let (transaction, writes) = (self.store.begin_impatient(), Vec::new());
                self.open.push(Open { transaction, writes, savepoint: None });
            }
            8..12 if self.open.is_empty() => self.redo_only()?,
            12..20 => self.end_one()?,
            20..27 if self.taken.len() < SNAPSHOTS_MAX => self.take()?,
            27..30 if !self.taken.is_empty() => {
                let at = self.random.below(self.taken.len() as u64) as usize;
                self.taken.swap_remove(at);
            }
            30..45 => self.look()?,
            45..52 => {
                let service = Service::ALL[self.random.below(10) as usize];
                self.store.step(service).map_err(|error| error.to_string())?;
            }
            52 => settle(self.store),
            53..58 => self.live_and_die()?,
            _ => self.change()?,
        }
        Ok(())
    }

    fn take(&mut self) -> Result<(), String> {
        let snapshot = self.store.snapshot().map_err(|error| error.to_string())?;
        let writes = self.open.iter().flat_map(|open| &open.writes);
        let keys = writes.flat_map(|(tree, keys)| keys.iter().map(|(key, _)| (*tree, key.clone())));
        let running = keys.collect();
        self.taken.push(Taken { snapshot, shows: self.committed.clone(), running });
        self.count.snapshots += 1;
        Ok(())
    }

    /// Keys that come between others and go again, in one transaction or in several, and maybe
    /// come and go once more.
    fn live_and_die(&mut self) -> Result<(), String> {
        let (which, at) = (self.random.below(TREES.len() as u64) as usize, self.random.below(KEYS));
        let count = 1 + self.random.below(SHORT_MAX);
        let keys: Vec<_> = (0..count).map(|one| short_key(at, one)).collect();
        for _ in 0..1 + self.random.below(2) {
            let value = any_value(self.random);
            let puts =
                keys.iter().map(|key| (key.clone(), Some(value.clone()))).collect::<Writes>();
            let deletes = keys.iter().map(|key| (key.clone(), None)).collect::<Writes>();
            let mut parts = vec![puts, deletes];
            if self.random.chance(40) {
                parts = vec![parts.concat()];
            }
            for part in parts {
                self.write_all(which, part)?;
            }
        }
        Ok(())
    }

    /// A transaction of these writes, which is given up if somebody is in its way; or in one of
    /// ten cases without that.
    fn write_all(&mut self, which: usize, writes: Writes) -> Result<(), String> {
        let mut one = self.store.begin_impatient();
        let tree = &self.trees[which];
        for (key, value) in &writes {
            let done = match value {
                Some(value) => one.put(tree, key, value),
                None => one.delete(tree, key).map(drop),
            };
            match done {
                Ok(()) => {}
                Err(TransactionError::Busy(_)) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        if self.random.chance(10) {
            return one.abort().map_err(|error| error.to_string());
        }
        one.commit(Durability::Memory).map_err(|error| error.to_string())?;
        self.has_committed(&[(which, writes)]);
        self.count.short += 1;
        Ok(())
    }

    /// Looks whether there are entries of deleted keys that no snapshot shows.
    fn check_ghosts(&mut self) -> Result<(), String> {
        self.open.clear();
        settle(self.store);
        let mut may_stay = BTreeSet::new();
        for Taken { shows, running, .. } in &self.taken {
            let trees = shows.iter().enumerate();
            let shown =
                trees.flat_map(|(tree, all)| all.keys().map(move |key| (tree, key.clone())));
            may_stay.extend(shown.chain(running.iter().cloned()));
        }
        may_stay.retain(|(tree, key)| !self.committed[*tree].contains_key(key));
        let ghosts = sound(self.store).ghosts;
        self.count.ghosts += ghosts;
        // And the name of the tree that went before all of them were taken, until its pages did.
        let is_right = ghosts <= may_stay.len() as u64 + 1;
        if is_right { Ok(()) } else { Err(format!("{ghosts} ghosts, of {}", may_stay.len())) }
    }

    /// Changes something in one of the transactions that are open.
    fn change(&mut self) -> Result<(), String> {
        let Some(at) = any_of(self.random, self.open.len()) else { return Ok(()) };
        let random = &mut *self.random;
        let which = random.below(TREES.len() as u64) as usize;
        let tree = self.trees[which];
        let Open { transaction, writes, savepoint } = &mut self.open[at];
        let at = random.below(KEYS);
        let changed = match random.below(20) {
            0 => {
                *savepoint = Some((transaction.savepoint(), writes.len()));
                return Ok(());
            }
            1 => {
                let Some((to, count)) = savepoint.take() else { return Ok(()) };
                transaction.roll_back_to(to).map_err(|error| error.to_string())?;
                writes.truncate(count);
                return Ok(());
            }
            2..4 => delete_range(transaction, &tree, at..at + random.below(20)),
            4..9 => transaction.delete(&tree, &key(at)).map(|_| vec![(key(at), None)]),
            _ => {
                let value = any_value(random);
                let put = transaction.put(&tree, &key(at), &value);
                put.map(|()| vec![(key(at), Some(value))])
            }
        };
        match changed {
            Ok(changes) => writes.push((which, changes)),
            Err(TransactionError::Busy(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }

    /// Commits or aborts one of the transactions that are open.
    fn end_one(&mut self) -> Result<(), String> {
        let Some(at) = any_of(self.random, self.open.len()) else { return Ok(()) };
        let Open { transaction, writes, .. } = self.open.swap_remove(at);
        if self.random.chance(30) {
            return transaction.abort().map_err(|error| error.to_string());
        }
        transaction.commit(Durability::Memory).map_err(|error| error.to_string())?;
        self.has_committed(&writes);
        Ok(())
    }

    fn has_committed(&mut self, writes: &[(usize, Writes)]) {
        writes.iter().for_each(|(tree, writes)| apply(&mut self.committed[*tree], writes));
        self.count.commits += 1;
    }

    /// A transaction that nobody can undo, while there is no other.
    fn redo_only(&mut self) -> Result<(), String> {
        let (mut one, mut writes) = (self.store.begin_redo_only(), Vec::new());
        for _ in 0..self.random.below(12) {
            let which = self.random.below(TREES.len() as u64) as usize;
            let (tree, at) = (self.trees[which], self.random.below(KEYS));
            let value = self.random.chance(70).then(|| any_value(self.random));
            let done = match &value {
                Some(value) => one.put(&tree, &key(at), value),
                None => one.delete(&tree, &key(at)).map(drop),
            };
            done.map_err(|error| error.to_string())?;
            writes.push((which, vec![(key(at), value)]));
        }
        match one.commit(Durability::Memory) {
            Ok(_) => self.has_committed(&writes),
            Err(CommitError::NotDone(TransactionError::PoolTooSmall) | CommitError::TooLarge) => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }

    /// Looks at a part of what a snapshot shows.
    fn look(&mut self) -> Result<(), String> {
        let Some(at) = any_of(self.random, self.taken.len()) else { return Ok(()) };
        let Taken { snapshot, shows, .. } = &self.taken[at];
        let which = self.random.below(TREES.len() as u64) as usize;
        self.count.looks += 1;
        let (from, to) = (self.random.below(KEYS), self.random.below(KEYS + 1));
        let (from, to) = (from.min(to), from.max(to));
        if self.random.chance(40) {
            let keys: Vec<_> = (from..to).map(key).collect();
            let found = snapshot.get_many(&self.trees[which], &keys);
            let found = found.map_err(|error| error.to_string())?;
            let expected = keys.iter().map(|key| shows[which].get(key).cloned());
            return same(found.into_iter().eq(expected), "keys", snapshot);
        }
        let range = (Bound::Included(key(from)), Bound::Excluded(key(to)));
        scans_to(snapshot, &self.trees[which], range, &shows[which], self.random.chance(50))
    }

    /// Looks at all that all snapshots show, and lets go of everything.
    fn end(mut self) -> Result<(), String> {
        self.check_ghosts()?;
        for Taken { snapshot, shows, .. } in self.taken.drain(..) {
            if snapshot.tree_names().map_err(|error| error.to_string())? != TREES {
                return Err("other trees".to_owned());
            }
            for (name, (tree, shows)) in TREES.iter().zip(self.trees.iter().zip(&shows)) {
                let found = snapshot.find_tree(name).map_err(|error| error.to_string())?;
                same(found == Some(*tree), "a tree's name", &snapshot)?;
                let all = (Bound::Unbounded, Bound::Unbounded);
                scans_to(&snapshot, tree, all, shows, self.random.chance(50))?;
            }
        }
        Ok(())
    }
}

fn any_of(random: &mut Random, count: usize) -> Option<usize> {
    (count > 0).then(|| random.below(count as u64) as usize)
}

/// Deletes a range, or nothing.
fn delete_range(
    transaction: &mut Transaction<'_>,
    tree: &Tree,
    range: std::ops::Range<u64>,
) -> Result<Writes, TransactionError> {
    let before = transaction.savepoint();
    let deleted = transaction.delete_range(tree, key(range.start)..key(range.end));
    if deleted.is_err() {
        transaction.roll_back_to(before)?;
    }
    let all = |at| (0..SHORT_MAX).map(move |one| short_key(at, one)).chain([key(at)]);
    deleted.map(|_| range.flat_map(all).map(|key| (key, None)).collect())
}

fn same(is_same: bool, what: &str, snapshot: &Snapshot<'_>) -> Result<(), String> {
    if is_same { Ok(()) } else { Err(format!("{what} of {snapshot:?} are other ones")) }
}

fn scans_to(
    snapshot: &Snapshot<'_>,
    tree: &Tree,
    range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    shows: &Contents,
    up: bool,
) -> Result<(), String> {
    let direction = if up { Direction::Up } else { Direction::Down };
    let found = snapshot.scan(tree, range.clone(), direction).collect::<Result<Vec<_>, _>>();
    let mut found = found.map_err(|error| error.to_string())?;
    if !up {
        found.reverse();
    }
    let is_empty = matches!(&range, (Bound::Included(low), Bound::Excluded(end)) if low >= end);
    let expected = shows.iter().filter(|(key, _)| {
        let above = !matches!(&range.0, Bound::Included(low) if *key < low);
        let below = !matches!(&range.1, Bound::Excluded(end) if *key >= end);
        above && below && !is_empty
    });
    let is_same = found.iter().map(|(key, value)| (key, value)).eq(expected);
    same(is_same, "a scan", snapshot)
}

/// Makes one of the trees empty, at once or by way of another one of its name.
fn empty_one(store: &mut Store, committed: &mut All, random: &mut Random) -> Result<(), String> {
    let which = random.below(TREES.len() as u64) as usize;
    if random.chance(50) {
        store.truncate_tree(TREES[which]).map_err(|error| error.to_string())?;
    } else {
        store.drop_tree(TREES[which]).map_err(|error| error.to_string())?;
        store.tree(TREES[which]).map_err(|error| error.to_string())?;
    }
    committed[which].clear();
    Ok(())
}

/// A life of some rounds, between which nobody has a snapshot or a transaction.
fn life(seed: u64, count: &mut Count) -> Result<(), String> {
    let (mut store, mut committed) = (open(&machine(seed)).0, All::default());
    let mut random = Random::new(seed);
    for _ in 0..3 {
        let trees = TREES.map(|name| store.tree(name).expect("a tree"));
        let (open, taken) = (Vec::new(), Vec::new());
        let mut life = Life {
            store: &store,
            trees,
            committed: &mut committed,
            random: &mut random,
            open,
            taken,
            count,
        };
        for _ in 0..STEPS {
            life.step()?;
        }
        life.end()?;
        empty_one(&mut store, &mut committed, &mut random)?;
    }
    settle(&store);
    let (stat, found) = (store.stat(), sound(&store));
    let left = (stat.snapshots, stat.snapshot_bytes, found.ghosts, found.unreached);
    if left != (0, 0, 0, vec![]) {
        return Err(format!("snapshots have left something: {left:?}"));
    }
    Ok(())
}

#[test]
fn snapshots_show_what_was_committed_when_they_were_taken() {
    let mut count = Count::default();
    for seed in 1..=60 * factor() {
        let lived = life(seed, &mut count);
        assert_eq!(lived, Ok(()), "seed {seed} of snapshot_lives::");
    }
    println!("{count:?}");
    assert!(count.looks > 1000 && count.snapshots > 500, "{count:?}");
    assert!(count.short > 1000 && count.ghosts > 100, "{count:?}");
}

#[test]
fn a_snapshot_that_forgets_something_would_be_noticed() {
    for invariant in [
        Invariant::FormersAreNoted,
        Invariant::ShownKeysStay,
        Invariant::SnapshotsUndoWhatRuns,
        Invariant::ShownValuesStay,
    ] {
        let _off = switch_off(invariant);
        let is_noticed = (1..=20).any(|seed| life(seed, &mut Count::default()).is_err());
        assert!(is_noticed, "nobody notices without {invariant:?}");
    }
}
