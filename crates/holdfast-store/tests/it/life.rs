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

/// What the program has in its hands.
struct Program<'s, 'm> {
    store: &'s Store,
    tree: Tree,
    random: Random,
    model: &'m mut Model,
    running: Vec<Running<'s>>,
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
            Err(CommitError::NotDone(TransactionError::Busy)) => {
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
        match self.running[at].operate(&self.tree, &seen, &mut self.random) {
            Ok(()) | Err(TransactionError::Busy) => Ok(()),
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
    ) -> Result<(), TransactionError> {
        let Running { transaction, writes, savepoint } = self;
        let key = any_key(random);
        match random.below(10) {
            0 | 1 => {
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
            4 | 5 => {
                let deleted = transaction.delete(tree, &key)?;
                assert_eq!(deleted, seen.contains_key(&key), "key {key:?}");
                writes.push((key, None));
            }
            _ => {
                let value = any_value(random);
                transaction.put(tree, &key, &value)?;
                writes.push((key, Some(value)));
            }
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
    let most = [8, 60, 600, 2049, 12_000][random.below(5) as usize];
    let mut value = vec![0; random.below(most) as usize];
    random.fill(&mut value);
    value
}

/// Checkpoints, cleaners and restarts of all kinds.
pub(crate) fn config_of(seed: u64) -> Config {
    Config {
        checkpoints: KINDS[seed as usize % KINDS.len()],
        cleaner: [Cleaner::Decoupled, Cleaner::Classical][usize::from(seed.is_multiple_of(4))],
        restart: [Restart::Instant, Restart::Classical][usize::from(seed.is_multiple_of(5))],
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
    let mut program = Program { store, tree: *tree, random, model, running };
    for _ in 0..steps {
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
