//! A program that uses a store, the same one for the same seed.
//!
//! Promise: every reading is compared with the model; what was acknowledged is durable in the model
//! from then on, and not before.
//! Never: goes on after an error of the machine.

use std::error::Error;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_store::{
    Checkpoints, Cleaner, CommitError, Config, Direction, Durability, Restart, Savepoint, Service,
    Store, Transaction, TransactionError, Tree, VerifyFault,
};

use crate::model::{Contents, Model, Writes, apply};
use crate::support::{config, place};

const KINDS: [Checkpoints; 3] =
    [Checkpoints::Decoupled, Checkpoints::Reread, Checkpoints::Classical];

pub(crate) type Failed = Box<dyn Error>;

/// A transaction, and what it did so far.
pub(crate) struct Running<'s> {
    transaction: Transaction<'s>,
    writes: Writes,
    savepoint: Option<(Savepoint, usize)>,
}

/// For so many steps keys come, then for as many most of them go, so that leaves split and merge.
const TIDE_STEPS: u32 = 50;
/// Keys that come or go at once, at most.
const TOGETHER_MAX: u64 = 4;

/// What the program has in its hands.
struct Program<'s, 'm> {
    store: &'s Store,
    tree: Tree,
    random: Random,
    model: &'m mut Model,
    running: Vec<Running<'s>>,
    is_ebb: bool,
}

impl Program<'_, '_> {
    fn step(&mut self) -> Result<(), Failed> {
        match self.random.below(20) {
            0..=3 => self.serve(),
            4 if self.running.len() < 4 => {
                let transaction = if self.random.chance(40) {
                    self.store.begin_redo_only_impatient()
                } else {
                    self.store.begin_impatient()
                };
                self.running.push(Running { transaction, writes: vec![], savepoint: None });
                Ok(())
            }
            5 | 6 => self.end(),
            _ => self.operate(),
        }
    }

    /// A service takes a step, or the page file is lost.
    fn serve(&mut self) -> Result<(), Failed> {
        if self.random.chance(3) {
            return Ok(self.store.replace_pages()?);
        }
        let service = Service::ALL[self.random.below(Service::ALL.len() as u64) as usize];
        self.store.step(service)?;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failed> {
        if self.running.is_empty() {
            return Ok(());
        }
        let at = self.random.below(self.running.len() as u64) as usize;
        let Running { transaction, writes, .. } = self.running.swap_remove(at);
        if self.random.chance(25) {
            return Ok(transaction.abort()?);
        }
        self.model.commit(writes);
        let durability = if self.random.chance(50) { Durability::Disk } else { Durability::Memory };
        match transaction.commit(durability) {
            // All that a redo-only one has changed goes to the log and into the pool at once.
            Err(
                CommitError::NotDone(TransactionError::Busy(_) | TransactionError::PoolTooSmall)
                | CommitError::TooLarge,
            ) => {
                self.model.take_back();
                return Ok(());
            }
            committed => committed?,
        };
        if durability == Durability::Disk {
            self.model.is_durable();
        }
        Ok(())
    }

    fn operate(&mut self) -> Result<(), Failed> {
        if self.running.is_empty() {
            return Ok(());
        }
        let at = self.random.below(self.running.len() as u64) as usize;
        let mut seen = self.model.now();
        apply(&mut seen, &self.running[at].writes);
        match self.running[at].operate(&self.tree, &seen, &mut self.random, self.is_ebb) {
            Ok(()) | Err(TransactionError::Busy(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Running<'_> {
    fn operate(
        &mut self,
        tree: &Tree,
        seen: &Contents,
        random: &mut Random,
        is_ebb: bool,
    ) -> Result<(), TransactionError> {
        let Running { transaction, writes, savepoint } = self;
        match random.below(10) {
            0 | 1 => {
                let key = any_key(random);
                let found = transaction.get(tree, &key)?;
                assert_eq!(found.as_ref(), seen.get(&key), "key {key:?}");
            }
            2 => *savepoint = Some((transaction.savepoint(), writes.len())),
            3 => {
                if let Some((savepoint, count)) = savepoint.take() {
                    transaction.roll_back_to(savepoint)?;
                    writes.truncate(count);
                }
            }
            at if at < if is_ebb { 9 } else { 5 } => self.delete_some(tree, seen, random)?,
            _ => {
                for _ in 0..1 + random.below(TOGETHER_MAX) {
                    let (key, value) = (any_key(random), any_value(random));
                    transaction.put(tree, &key, &value)?;
                    writes.push((key, Some(value)));
                }
            }
        }
        Ok(())
    }

    /// Deletes some keys that follow one another, and some that are not there.
    fn delete_some(
        &mut self,
        tree: &Tree,
        seen: &Contents,
        random: &mut Random,
    ) -> Result<(), TransactionError> {
        let first = any_key(random);
        let there = seen.range(first.clone()..).map(|(key, _)| key.clone());
        let keys: Vec<_> = there.take(random.below(TOGETHER_MAX) as usize).chain([first]).collect();
        for (at, key) in keys.iter().enumerate() {
            let deleted = self.transaction.delete(tree, key)?;
            let is_first = keys[..at].contains(key);
            assert_eq!(deleted, seen.contains_key(key) && !is_first, "key {key:?}");
            self.writes.push((key.clone(), None));
        }
        Ok(())
    }
}

fn any_key(random: &mut Random) -> Vec<u8> {
    let mut key = format!("{:02}", random.below(80)).into_bytes();
    if random.below(4) == 0 {
        key.resize(2 + 20 * usize::from(key[1] - b'0'), b'x');
    }
    key
}

fn any_value(random: &mut Random) -> Vec<u8> {
    let most = [8, 600, 2049, 2049, 12_000][random.below(5) as usize];
    let mut value = vec![0; (most / 2 + random.below(most / 2)) as usize];
    random.fill(&mut value);
    value
}

/// Checkpoints, cleaners and restarts of all kinds.
pub(crate) fn config_of(seed: u64) -> Config {
    Config {
        checkpoints: KINDS[seed as usize % KINDS.len()],
        cleaner: [Cleaner::Decoupled, Cleaner::Classical][usize::from(seed.is_multiple_of(4))],
        restart: [Restart::Instant, Restart::Classical][usize::from(seed.is_multiple_of(5))],
        // Whatever a transaction has changed lies elsewhere, one change behind the other.
        undo_bytes: if seed.is_multiple_of(3) { 0 } else { 1 << 20 },
        ..config()
    }
}

/// Opens the store, finds in it what the model says, and works for so many steps.
pub(crate) fn life(
    files: &FakeFiles,
    model: &mut Model,
    seed: u64,
    steps: u32,
) -> Result<(), Failed> {
    let (store, _) = Store::open_at(place(files), &config_of(seed))?;
    let tree = store.tree("accounts")?;
    let found = contents(&store, &tree)?;
    model.found(&found).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    drop(work(&store, &tree, model, seed, steps)?);
    // What the device lost with its power is no fault of the store's.
    let verified = store.verify(&mut |_| ())?;
    let is_ours = |fault: &VerifyFault| !matches!(fault, VerifyFault::OnDevice(_));
    match verified.faults.iter().find(|(_, fault)| is_ours(fault)) {
        Some(fault) => Err(format!("verify: {fault:?}").into()),
        None => Ok(()),
    }
}

/// Works for so many steps. Returns what is still running.
pub(crate) fn work<'s>(
    store: &'s Store,
    tree: &Tree,
    model: &mut Model,
    seed: u64,
    steps: u32,
) -> Result<Vec<Running<'s>>, Failed> {
    let (random, running) = (Random::new(seed), Vec::new());
    let mut program = Program { store, tree: *tree, random, model, running, is_ebb: false };
    for step in 0..steps {
        program.is_ebb = step / TIDE_STEPS % 2 == 1;
        program.step()?;
    }
    Ok(program.running)
}

/// Everything that a tree holds, both ways.
pub(crate) fn contents(store: &Store, tree: &Tree) -> Result<Contents, TransactionError> {
    let mut reading = store.begin_impatient();
    let up = reading.scan::<&[u8]>(tree, .., Direction::Up).collect::<Result<Contents, _>>()?;
    let mut down = reading.scan::<&[u8]>(tree, .., Direction::Down);
    for (key, value) in up.iter().rev() {
        let found = down.next().expect("both ways the same")?;
        assert!((&found.0, &found.1) == (key, value), "both ways the same");
    }
    assert!(down.next().is_none(), "both ways the same");
    Ok(up)
}
