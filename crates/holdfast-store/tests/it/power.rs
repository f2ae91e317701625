//! Lives of a store whose machine loses its power, again and again.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use holdfast_io::fake::{FakeFiles, Mood, Random, Sectors};
use holdfast_store::{
    Checkpoints, Config, Direction, Durability, Restart, Savepoint, Service, Store, Transaction,
    TransactionError, Tree,
};

use crate::model::{Contents, Model, Writes, apply};
use crate::support::{config, machine, place, seeds};

/// The power is gone.
#[derive(Debug)]
struct Gone;

/// A transaction, and what it did so far.
struct Running<'s> {
    transaction: Transaction<'s>,
    writes: Writes,
    savepoint: Option<(Savepoint, usize)>,
}

/// One epoch of a life, from an open to a power cut or until it has had enough.
struct Epoch<'s, 'm> {
    store: &'s Store,
    tree: Tree,
    random: Random,
    model: &'m mut Model,
    running: Vec<Running<'s>>,
}

impl Epoch<'_, '_> {
    fn run(&mut self, steps: u32) -> Result<(), Gone> {
        for _ in 0..steps {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Gone> {
        match self.random.below(20) {
            0..=3 => self.serve(),
            4 if self.running.len() < 4 => {
                let transaction = self.store.begin_impatient();
                self.running.push(Running { transaction, writes: vec![], savepoint: None });
                Ok(())
            }
            5 | 6 => self.end(),
            _ => self.operate(),
        }
    }

    fn serve(&mut self) -> Result<(), Gone> {
        let service = Service::ALL[self.random.below(Service::ALL.len() as u64) as usize];
        self.store.step(service).map(drop).map_err(|_| Gone)
    }

    fn end(&mut self) -> Result<(), Gone> {
        if self.running.is_empty() {
            return Ok(());
        }
        let at = self.random.below(self.running.len() as u64) as usize;
        let Running { transaction, writes, .. } = self.running.swap_remove(at);
        if self.random.chance(25) {
            return transaction.abort().map_err(|_| Gone);
        }
        self.model.commit(writes);
        let durability = if self.random.chance(50) { Durability::Disk } else { Durability::Memory };
        transaction.commit(durability).map_err(|_| Gone)?;
        if durability == Durability::Disk {
            self.model.is_durable();
        }
        Ok(())
    }

    fn operate(&mut self) -> Result<(), Gone> {
        if self.running.is_empty() {
            return Ok(());
        }
        let at = self.random.below(self.running.len() as u64) as usize;
        let key = any_key(&mut self.random);
        let mut seen = self.model.now();
        let Running { transaction, writes, savepoint } = &mut self.running[at];
        apply(&mut seen, writes);
        let (tree, there) = (&self.tree, seen.contains_key(&key));
        let done = match self.random.below(10) {
            0 | 1 => transaction.get(tree, &key).map(|found| {
                assert_eq!(found.as_ref(), seen.get(&key), "key {key:?}");
            }),
            2 => {
                *savepoint = Some((transaction.savepoint(), writes.len()));
                Ok(())
            }
            3 => match savepoint.take() {
                Some((savepoint, count)) => {
                    transaction.roll_back_to(savepoint).map(|()| writes.truncate(count))
                }
                None => Ok(()),
            },
            4 | 5 => transaction.delete(tree, &key).map(|deleted| {
                assert_eq!(deleted, there, "key {key:?}");
                writes.push((key, None));
            }),
            _ => {
                let value = any_value(&mut self.random);
                let put = transaction.put(tree, &key, &value);
                put.map(|()| writes.push((key, Some(value))))
            }
        };
        match done {
            Ok(()) | Err(TransactionError::Busy) => Ok(()),
            Err(_) => Err(Gone),
        }
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

/// Lives until the power is cut, or for so many steps.
fn epoch(files: &FakeFiles, seed: u64, steps: u32, model: &mut Model) -> Result<(), Gone> {
    let (store, _) = Store::open_at(place(files), &config_of(seed)).map_err(|_| Gone)?;
    let tree = store.tree("accounts").map_err(|_| Gone)?;
    let (random, running) = (Random::new(seed), Vec::new());
    Epoch { store: &store, tree, random, model, running }.run(steps)
}

const KINDS: [Checkpoints; 3] =
    [Checkpoints::Decoupled, Checkpoints::Reread, Checkpoints::Classical];

/// Checkpoints and restarts of all kinds.
fn config_of(seed: u64) -> Config {
    Config {
        checkpoints: KINDS[seed as usize % KINDS.len()],
        restart: [Restart::Instant, Restart::Classical][usize::from(seed.is_multiple_of(5))],
        ..config()
    }
}

/// What the store holds that was left behind, whose trees are sound.
fn look(files: &FakeFiles, seed: u64) -> Result<Contents, String> {
    let opened = Store::open_at(place(files), &config_of(seed));
    let (store, _) = opened.map_err(|error| format!("open: {error}"))?;
    let tree = store.tree("accounts").map_err(|error| format!("tree: {error}"))?;
    let mut reading = store.begin_impatient();
    let scan = reading.scan::<&[u8]>(&tree, .., Direction::Up);
    let found = scan.map(|found| found.map_err(|error| format!("scan: {error}"))).collect();
    store.check().map_err(|error| format!("check: {error}"))?;
    found
}

fn any_mood(random: &mut Random) -> Mood {
    [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter][random.below(4) as usize]
}

/// Several epochs, each of which ends with a power cut, and most restarts with another.
fn life(seed: u64) {
    let mut random = Random::new(seed);
    let mut files = machine(seed);
    if seed.is_multiple_of(3) {
        files.set_sectors(Sectors::Garbage);
    }
    let mut model = Model::default();
    for _ in 0..4 {
        files.cut_power_at(files.operations() + 1 + random.below(400));
        let _ = epoch(&files, random.any(), 300, &mut model);
        files = files.after_power_cut_in(any_mood(&mut random), random.any());
        for _ in 0..random.below(3) {
            files.cut_power_at(files.operations() + 1 + random.below(20));
            let _ = look(&files, random.any());
            files = files.after_power_cut_in(any_mood(&mut random), random.any());
        }
        let found =
            look(&files, random.any()).unwrap_or_else(|error| panic!("the store is gone: {error}"));
        model.found(&found).unwrap_or_else(|error| panic!("{error}"));
        files = files.after_power_cut_in(Mood::KeepAll, random.any());
    }
}

#[test]
fn a_store_is_what_its_durable_transactions_made_of_it_whenever_the_power_is_cut() {
    for seed in seeds(60) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| life(seed))) {
            println!("replay: HOLDFAST_SEED={seed} cargo test -p holdfast-store --test it power");
            resume_unwind(panic);
        }
    }
}
