//! Many threads on a store that has threads of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use holdfast_io::fake::Random;
use holdfast_store::{
    Checkpoints, Config, Direction, Durability, Services, Store, Transaction, TransactionError,
    Tree,
};

use crate::support::{config, machine, place};

/// Longer than anything here takes.
const WATCHDOG: Duration = Duration::from_secs(120);
const ACCOUNTS: u64 = 60;
const BALANCE: u64 = 1000;
const THREADS: u64 = 6;
const TRANSFERS: u64 = 150;
/// Where a reader and a writer are to meet between two looks.
const WRITES: u64 = 200_000;

fn key(account: u64) -> [u8; 2] {
    (account as u16).to_be_bytes()
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().expect("a balance"))
}

/// A balance, and what makes the pages many.
fn value(balance: u64) -> Vec<u8> {
    let mut value = vec![7; 700];
    value[..8].copy_from_slice(&balance.to_be_bytes());
    value
}

fn store(config: &Config) -> (Store, Tree) {
    let (store, _) = Store::open_at(place(&machine(1)), config).expect("the store opens");
    let tree = store.tree("accounts").expect("a tree");
    let mut one = store.begin();
    for account in 0..ACCOUNTS {
        one.put(&tree, &key(account), &value(BALANCE)).expect("room");
    }
    one.commit(Durability::Disk).expect("a device");
    (store, tree)
}

fn sum(transaction: &mut Transaction<'_>, tree: &Tree) -> Result<u64, TransactionError> {
    let scan = transaction.scan::<&[u8]>(tree, .., Direction::Up);
    scan.map(|found| found.map(|(_, value)| number(&value))).sum()
}

/// Moves money, adds and deletes an account with none, or counts all of it.
fn one_transaction(
    random: &mut Random,
    store: &Store,
    tree: &Tree,
) -> Result<(), TransactionError> {
    let mut one = store.begin();
    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
    match random.below(8) {
        0 => assert_eq!(sum(&mut one, tree)?, ACCOUNTS * BALANCE),
        1 => {
            let other = key(ACCOUNTS + random.below(20));
            if !one.delete(tree, &other)? {
                one.insert(tree, &other, &value(0))?;
            }
        }
        _ => {
            let has = one.get_for_update(tree, &key(from))?.expect("nobody deletes it");
            let some = random.below(10).min(number(&has));
            one.update(tree, &key(from), |has| *has = value(number(has) - some))?;
            one.update(tree, &key(to), |has| *has = value(number(has) + some))?;
        }
    }
    if random.chance(10) {
        return one.abort();
    }
    let durability = if random.chance(50) { Durability::Disk } else { Durability::Memory };
    one.commit(durability).expect("the machine is well");
    Ok(())
}

/// Runs transactions, those that were told of a deadlock again. Returns how many were.
fn worker(seed: u64, store: &Store, tree: &Tree) -> u64 {
    let (mut random, mut deadlocks) = (Random::new(seed), 0);
    for _ in 0..TRANSFERS {
        match one_transaction(&mut random, store, tree) {
            Ok(()) => {}
            Err(TransactionError::Deadlock(_)) => deadlocks += 1,
            Err(error) => panic!("{error}"),
        }
    }
    deadlocks
}

fn bank(config: &Config) {
    let (store, tree) = store(config);
    let deadlocks = AtomicU64::new(0);
    std::thread::scope(|threads| {
        for seed in 1..=THREADS {
            let (store, tree, deadlocks) = (&store, &tree, &deadlocks);
            threads.spawn(move || {
                deadlocks.fetch_add(worker(seed, store, tree), Ordering::Relaxed);
            });
        }
    });
    let total = sum(&mut store.begin(), &tree).expect("pages");
    assert_eq!(total, ACCOUNTS * BALANCE, "after {deadlocks:?} deadlocks");
    let trouble = store.trouble();
    assert!(trouble.is_none(), "{trouble:?}");
    let verified = store.verify(&mut |_| ()).expect("a log");
    assert!(verified.faults.is_empty() && verified.compared > 0, "{verified:?}");
    store.close().expect("a device");
}

/// Fails if this does not come to an end.
fn watched(config: Config) {
    let (done, ended) = channel();
    let thread = std::thread::spawn(move || {
        bank(&config);
        done.send(()).expect("somebody waits");
    });
    match ended.recv_timeout(WATCHDOG) {
        Err(RecvTimeoutError::Timeout) => panic!("somebody waits for ever"),
        _ => thread.join().expect("no thread panics"),
    }
}

#[test]
fn no_money_is_lost_or_made_whoever_moves_it() {
    watched(Config { services: Services::Threads, checkpoint_ms: Some(1), ..config() });
}

#[test]
fn the_same_goes_for_checkpoints_that_read_the_log_again() {
    let checkpoints = Checkpoints::Reread;
    let services = Services::Threads;
    watched(Config { services, checkpoints, checkpoint_ms: Some(1), ..config() });
}

#[test]
fn a_log_that_grows_while_it_is_read_again_has_not_lost_anything() {
    let (store, tree) = store(&Config { checkpoints: Checkpoints::Reread, ..config() });
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let reading = threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                store.checkpoint().expect("nothing was released");
            }
        });
        for number in 0..WRITES {
            let mut one = store.begin();
            one.put(&tree, &key(0), &number.to_be_bytes()).expect("room");
            one.commit(Durability::Memory).expect("room");
        }
        is_done.store(true, Ordering::Relaxed);
        reading.join().expect("no thread panics");
    });
}
