//! Backups of a store that others write into meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_store::{
    At, Config, Direction, Durability, Rsn, Services, Store, TransactionError, Tree, restore_at,
};

use crate::power::with_seeds;
use crate::support::{config, machine, open, place, settle, sound};

const ACCOUNTS: u64 = 60;
const BALANCE: i64 = 1000;
const THREADS: u64 = 4;
/// Transfers between one backup and the next, at the least.
const TRANSFERS: usize = 150;

/// Money that went from one account to another.
type Transfer = (u64, u64, i64);
/// Whose transfer it was, and which of his.
type Number = (u64, u64);

/// A transfer that was acknowledged, and where it happened.
struct Booked {
    number: Number,
    at: Rsn,
}

/// What a store says that was done, and what came of it.
#[derive(Clone)]
struct Books {
    history: BTreeMap<Number, Transfer>,
    accounts: BTreeMap<u64, i64>,
}

/// A store with accounts, and a line of history for each transfer.
struct Bank {
    store: Store,
    accounts: Tree,
    history: Tree,
}

impl Bank {
    fn of(store: Store) -> Bank {
        let [accounts, history] =
            ["accounts", "history"].map(|name| store.tree(name).expect("a tree"));
        Bank { store, accounts, history }
    }

    fn founded(files: &FakeFiles) -> Bank {
        let config = Config { services: Services::Threads, checkpoint_ms: Some(1), ..config() };
        let bank = Bank::of(Store::open_at(place(files), &config).expect("it opens").0);
        let mut one = bank.store.begin();
        for account in 0..ACCOUNTS {
            one.put(&bank.accounts, &account.to_be_bytes(), &row(BALANCE)).expect("room");
        }
        one.commit(Durability::Disk).expect("a device");
        bank
    }

    /// One transfer. Returns where it happened.
    fn transfer(&self, random: &mut Random, number: Number) -> Result<Rsn, TransactionError> {
        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
        let amount = random.below(100) as i64;
        let mut one = self.store.begin();
        for (account, change) in [(from, -amount), (to, amount)] {
            let key = account.to_be_bytes();
            let held = one.get_for_update(&self.accounts, &key)?.expect("nobody deletes it");
            one.put(&self.accounts, &key, &row(number_in(&held) + change))?;
        }
        let line = [number.0.to_be_bytes(), number.1.to_be_bytes()].concat();
        let value = [from as i64, to as i64, amount].map(i64::to_be_bytes).concat();
        one.insert(&self.history, &line, &value)?;
        let durability = if random.chance(20) { Durability::Disk } else { Durability::Memory };
        Ok(one.commit(durability).expect("the machine is well").at)
    }

    fn books(&self) -> Books {
        let mut reading = self.store.begin();
        let mut rows = |tree: &Tree| -> Vec<_> {
            let scan = reading.scan::<&[u8]>(tree, .., Direction::Up);
            scan.map(|found| found.expect("pages")).collect()
        };
        let accounts = rows(&self.accounts)
            .into_iter()
            .map(|(key, value)| (number_in(&key) as u64, number_in(&value)));
        let accounts = accounts.collect();
        let history = rows(&self.history).into_iter().map(|(key, value)| {
            let number = (number_in(&key) as u64, number_in(&key[8..]) as u64);
            let [from, to, amount] = [0, 8, 16].map(|at| number_in(&value[at..]));
            (number, (from as u64, to as u64, amount))
        });
        Books { history: history.collect(), accounts }
    }
}

/// A balance, and what makes the pages many.
fn row(balance: i64) -> Vec<u8> {
    let mut row = vec![7; 700];
    row[..8].copy_from_slice(&balance.to_be_bytes());
    row
}

fn number_in(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(*bytes.first_chunk().expect("a number"))
}

/// What is wrong with books that should have the transfers that happened up to `end`, and no other.
fn fault_in(books: &Books, booked: &[Booked], end: Rsn) -> Option<String> {
    let wanted = booked.iter().filter(|one| one.at <= end).map(|one| one.number);
    let wanted: BTreeSet<Number> = wanted.collect();
    let found: BTreeSet<Number> = books.history.keys().copied().collect();
    if let Some(number) = wanted.symmetric_difference(&found).next() {
        let is_missing = wanted.contains(number);
        return Some(format!("{number:?}: {}", if is_missing { "missing" } else { "too late" }));
    }
    let mut accounts: BTreeMap<u64, i64> = (0..ACCOUNTS).map(|one| (one, BALANCE)).collect();
    for (from, to, amount) in books.history.values() {
        *accounts.entry(*from).or_default() -= amount;
        *accounts.entry(*to).or_default() += amount;
    }
    let wrong = accounts.iter().find(|(account, sum)| books.accounts.get(account) != Some(sum));
    wrong.map(|(account, sum)| format!("account {account} should have {sum}"))
}

/// Ends the others, also when whoever has it fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Transfers of one thread until it is told to stop.
fn write_on(
    bank: &Bank,
    (seed, thread): (u64, u64),
    booked: &Mutex<Vec<Booked>>,
    stop: &AtomicBool,
) {
    let _stop = Stop(stop);
    let (mut random, mut next) = (Random::new(seed * THREADS + thread), 0);
    while !stop.load(Ordering::Relaxed) {
        let number = (thread, next);
        match bank.transfer(&mut random, number) {
            Ok(at) => {
                booked.lock().expect("nobody panics with it").push(Booked { number, at });
                next += 1;
            }
            Err(TransactionError::Deadlock(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits until so many transfers more are acknowledged. Returns the last place of all.
fn wait_for(more: usize, booked: &Mutex<Vec<Booked>>, stop: &AtomicBool) -> Rsn {
    let booked = || booked.lock().expect("nobody panics with it");
    let wanted = booked().len() + more;
    while booked().len() < wanted {
        assert!(!stop.load(Ordering::Relaxed), "somebody who writes failed");
        std::thread::sleep(Duration::from_millis(1));
    }
    booked().iter().map(|one| one.at).max().expect("there is one")
}

/// Backs a bank up while it is written, in a new place and over the old one by turns. Returns what
/// was restored, with the end of each.
fn back_up_and_restore(
    bank: &Bank,
    booked: &Mutex<Vec<Booked>>,
    stop: &AtomicBool,
) -> Vec<(Rsn, FakeFiles)> {
    let mut restored = Vec::new();
    for round in 0..2 {
        let backup = place(&machine(10 + round));
        for forward in [false, true, true] {
            let acknowledged = wait_for(TRANSFERS, booked, stop);
            let made = match forward {
                false => bank.store.back_up_at(&backup, &mut |_| ()),
                true => bank.store.forward_at(&backup, &mut |_| ()),
            };
            let end = made.expect("a device").end;
            assert!(end >= acknowledged, "what was acknowledged before it began is in it");
            let to = machine(20 + round);
            restore_at(&backup, At::End, &place(&to), &config(), &mut |_| ()).expect("a device");
            restored.push((end, to));
        }
    }
    restored
}

fn backed_up_while_written(seed: u64) -> u64 {
    let (bank, booked) = (Bank::founded(&machine(seed)), Mutex::new(Vec::new()));
    let stop = AtomicBool::new(false);
    let restored = std::thread::scope(|threads| {
        let _stop = Stop(&stop);
        for thread in 0..THREADS {
            let (bank, booked, stop) = (&bank, &booked, &stop);
            threads.spawn(move || write_on(bank, (seed, thread), booked, stop));
        }
        back_up_and_restore(&bank, &booked, &stop)
    });
    let booked = booked.into_inner().expect("nobody panics with it");
    for (end, files) in &restored {
        let (store, _) = open(files);
        settle(&store);
        sound(&store);
        assert_eq!(fault_in(&Bank::of(store).books(), &booked, *end), None, "up to {end}");
    }
    assert_eq!(fault_in(&bank.books(), &booked, Rsn(u64::MAX)), None, "the store itself");
    let trouble = bank.store.trouble();
    assert!(trouble.is_none(), "{trouble:?}");
    restored.len() as u64
}

#[test]
fn a_backup_has_what_was_committed_before_its_end_and_nothing_else_whoever_writes_meanwhile() {
    with_seeds(1..5, "busy_backups::a_backup_has", backed_up_while_written);
}

#[test]
fn books_that_lack_a_transfer_have_one_too_many_or_do_not_add_up_are_found() {
    let at = |number, at| Booked { number, at: Rsn(at) };
    let booked = [at((0, 0), 10), at((1, 0), 20), at((0, 1), 30)];
    let mut accounts: BTreeMap<u64, i64> = (0..ACCOUNTS).map(|one| (one, BALANCE)).collect();
    accounts.insert(1, BALANCE - 8);
    accounts.insert(2, BALANCE + 8);
    let history = BTreeMap::from([((0, 0), (1, 2, 5)), ((1, 0), (1, 2, 3))]);
    let books = Books { history, accounts };
    let fault = |books: &Books, end| fault_in(books, &booked, Rsn(end));
    assert_eq!(fault(&books, 20), None);
    assert!(fault(&books, 30).is_some_and(|told| told.contains("missing")));
    assert!(fault(&books, 19).is_some_and(|told| told.contains("too late")));
    let mut other = books.clone();
    other.accounts.insert(1, BALANCE);
    assert!(fault(&other, 20).is_some_and(|told| told.contains("account 1")));
    other.accounts.remove(&1);
    assert!(fault(&other, 20).is_some_and(|told| told.contains("account 1")));
}
