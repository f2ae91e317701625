//! A program that uses a store, the same one for the same seed.
//!
//! Promise: every reading is compared with what is known; what was acknowledged is known as such
//! from then on, and not before.
//! Never: goes on after an error.

use std::error::Error;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_store::{Direction, Durability, Savepoint, Service, Store, Transaction, Tree};

use crate::model::{Change, Held, Known, TREES, difference};
use crate::support::{config, place, value};

/// So many transactions run at once, each with keys of its own.
const RUNNING: usize = 3;

/// Keys of a tree.
const KEYS: u64 = 60;

type Failed = Box<dyn Error>;

/// A transaction, and what it would commit.
struct Running<'s> {
    transaction: Transaction<'s>,
    changes: Vec<Change>,
    savepoints: Vec<(Savepoint, usize)>,
}

/// What a program has in its hands.
struct Program<'s> {
    store: &'s Store,
    trees: Vec<Tree>,
    known: &'s mut Known,
    random: &'s mut Random,
    running: [Option<Running<'s>>; RUNNING],
}

/// Opens, compares, works, closes; an error if the disk fails on the way.
pub(crate) fn life(
    files: &FakeFiles,
    known: &mut Known,
    random: &mut Random,
    steps: u64,
) -> Result<(), Failed> {
    let (store, _) = Store::open_at(place(files), &config())?;
    let trees = TREES.iter().map(|name| store.tree(name)).collect::<Result<Vec<_>, _>>()?;
    known.found(&held(&store, &trees)?);
    let mut program =
        Program { store: &store, trees, known, random, running: [const { None }; RUNNING] };
    for _ in 0..steps {
        program.step()?;
    }
    drop(program);
    Ok(store.close()?)
}

/// Everything that the store holds, read both ways.
pub(crate) fn held(store: &Store, trees: &[Tree]) -> Result<Held, Failed> {
    let (mut held, mut transaction) = (Held::default(), store.begin());
    for (tree, held) in trees.iter().zip(&mut held.0) {
        for entry in transaction.scan::<Vec<u8>>(tree, .., Direction::Up) {
            let (key, value) = entry?;
            assert!(held.insert(key, value).is_none(), "a key comes once");
        }
        let mut downwards = transaction.scan::<Vec<u8>>(tree, .., Direction::Down);
        for (key, value) in held.iter().rev() {
            let (found_key, found_value) = downwards.next().expect("both ways the same")?;
            assert!((&found_key, &found_value) == (key, value), "both ways the same");
        }
        assert!(downwards.next().is_none(), "both ways the same");
    }
    transaction.commit(Durability::Memory)?;
    Ok(held)
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number:03}").into_bytes()
}

impl Program<'_> {
    fn step(&mut self) -> Result<(), Failed> {
        match self.random.below(100) {
            0..55 => self.change(),
            55..70 => self.end(),
            70..74 => self.savepoint(),
            74..77 => self.compare(),
            77..80 => self.store.checkpoint().map(|_| ()).map_err(Into::into),
            _ => self.serve(),
        }
    }

    /// One transaction changes one of its keys.
    fn change(&mut self) -> Result<(), Failed> {
        let which = self.random.below(RUNNING as u64) as usize;
        let change = self.any_change(which);
        let store = self.store;
        let running = self.running[which].get_or_insert_with(|| Running::begin(store));
        let Change { tree, key, value } = &change;
        let tree = &self.trees[*tree];
        match value {
            Some(value) => running.transaction.put(tree, key, value)?,
            None => drop(running.transaction.delete(tree, key)?),
        }
        running.changes.push(change);
        Ok(())
    }

    /// Keys are shared out among transactions, so that none waits.
    fn any_change(&mut self, which: usize) -> Change {
        let tree = self.random.below(TREES.len() as u64) as usize;
        let number = self.random.below(KEYS / RUNNING as u64) as usize * RUNNING + which;
        let key = key(number as u64);
        let value = (!self.random.chance(30)).then(|| value(self.random));
        Change { tree, key, value }
    }

    /// One transaction commits, or rolls back.
    fn end(&mut self) -> Result<(), Failed> {
        let which = self.random.below(RUNNING as u64) as usize;
        let Some(running) = self.running[which].take() else { return Ok(()) };
        if self.random.chance(20) {
            return Ok(running.transaction.abort()?);
        }
        let durability = if self.random.chance(40) { Durability::Disk } else { Durability::Memory };
        self.known.commits(running.changes);
        running.transaction.commit(durability)?;
        if durability == Durability::Disk {
            self.known.acknowledged();
        }
        Ok(())
    }

    /// One transaction makes a savepoint, or goes back to one.
    fn savepoint(&mut self) -> Result<(), Failed> {
        let which = self.random.below(RUNNING as u64) as usize;
        let Some(running) = &mut self.running[which] else { return Ok(()) };
        if self.random.chance(50) {
            let savepoint = running.transaction.savepoint();
            running.savepoints.push((savepoint, running.changes.len()));
        } else if let Some((savepoint, changes)) = running.savepoints.pop() {
            running.transaction.roll_back_to(savepoint)?;
            running.changes.truncate(changes);
        }
        Ok(())
    }

    /// One service takes a step.
    fn serve(&mut self) -> Result<(), Failed> {
        let which = self.random.below(Service::ALL.len() as u64) as usize;
        self.store.step(Service::ALL[which])?;
        Ok(())
    }

    /// Everything is what it should be, once nobody is at work.
    fn compare(&mut self) -> Result<(), Failed> {
        for running in self.running.iter_mut().filter_map(Option::take) {
            running.transaction.abort()?;
        }
        let (known, found) = (self.known.now(), held(self.store, &self.trees)?);
        assert!(known == found, "{}", difference(&known, &found));
        Ok(())
    }
}

impl<'s> Running<'s> {
    fn begin(store: &'s Store) -> Running<'s> {
        Running { transaction: store.begin(), changes: Vec::new(), savepoints: Vec::new() }
    }
}
