//! Many threads at once: nobody has what does not bear another's, and everybody comes to an end.

use std::collections::HashMap;

use holdfast_io::fake::Random;

use super::*;

const THREADS: u16 = 64;
const TRANSACTIONS: u32 = 150;
const KEYS: u64 = 12;
const MODES: [Mode; 6] =
    [Mode::READ, Mode::READ, Mode::CHANGE, Mode::READ_GAP, Mode::INSERT, Mode::SCAN];

/// Who has what, as those say who were told that they have it.
#[derive(Default)]
struct Ledger(Mutex<HashMap<(u8, Slot), Mode>>);

impl Ledger {
    /// Enters a lock, unless somebody has one that it does not bear.
    fn enter(&self, key: u8, slot: Slot, mode: Mode) -> Result<(), (Slot, Mode)> {
        let mut held = self.0.lock().unwrap();
        let others = held.iter().filter(|((at, other), _)| *at == key && *other != slot);
        let mut against = others.filter(|(_, other)| !other.is_compatible(mode));
        if let Some(((_, other), mode)) = against.next() {
            return Err((*other, *mode));
        }
        let all = held.entry((key, slot)).or_insert(Mode::NONE);
        *all = all.join(mode);
        Ok(())
    }

    fn strike(&self, slot: Slot) {
        self.0.lock().unwrap().retain(|(_, other), _| *other != slot);
    }
}

#[test]
fn threads_never_have_what_does_not_bear_one_another_and_all_come_to_an_end() {
    let seed = 0x10C5;
    let (locks, ledger) = (Arc::new(Locks::default()), Arc::new(Ledger::default()));
    let (done, finished) = channel();
    for slot in (0..THREADS).map(Slot) {
        let (locks, ledger, done) = (Arc::clone(&locks), Arc::clone(&ledger), done.clone());
        std::thread::spawn(move || live(seed, slot, &locks, &ledger, &done));
    }
    drop(done);
    let deadlocks: u32 = (0..THREADS).map(|_| ended(finished.recv_timeout(WATCHDOG), seed)).sum();
    assert!(deadlocks > 0, "there were circles to be found");
    assert!((0..KEYS).all(|key| locks.is_free(name(key as u8))));
}

fn ended(told: Result<u32, RecvTimeoutError>, seed: u64) -> u32 {
    told.unwrap_or_else(|error| {
        panic!("seed {seed}: a thread {error}: cargo test -p holdfast-store locks::tests::threads")
    })
}

/// Transactions of one thread, each of which is repeated until it is none's victim.
fn live(seed: u64, slot: Slot, locks: &Locks, ledger: &Ledger, done: &Sender<u32>) {
    let mut random = Random::new(seed + u64::from(slot.0));
    let (mut holder, mut victim) = (Holder::new(slot), 0);
    for _ in 0..TRANSACTIONS {
        while transaction(&mut random, &mut holder, locks, ledger).is_err() {
            victim += 1;
        }
    }
    done.send(victim).unwrap();
}

fn transaction(
    random: &mut Random,
    holder: &mut Holder,
    locks: &Locks,
    ledger: &Ledger,
) -> Result<(), LockError> {
    let wanted = 1 + random.below(5);
    let each = (0..wanted).map(|_| (random.below(KEYS) as u8, random.below(MODES.len() as u64)));
    let each: Vec<_> = each.collect();
    let mut locked = Ok(());
    for (key, mode) in each {
        let mode = MODES[mode as usize];
        locked = locks.lock(holder, name(key), mode);
        if locked.is_err() {
            break;
        }
        ledger.enter(key, holder.slot(), mode).expect("others bear what was granted");
        std::thread::yield_now();
    }
    ledger.strike(holder.slot());
    locks.release(holder);
    locked
}

#[test]
fn the_ledger_notices_what_does_not_bear_another() {
    let ledger = Ledger::default();
    assert_eq!(ledger.enter(1, Slot(1), Mode::READ), Ok(()));
    assert_eq!(ledger.enter(1, Slot(2), Mode::SCAN), Ok(()));
    assert_eq!(ledger.enter(1, Slot(1), Mode::INSERT), Err((Slot(2), Mode::SCAN)));
    assert_eq!(ledger.enter(2, Slot(1), Mode::CHANGE), Ok(()));
    ledger.strike(Slot(2));
    assert_eq!(ledger.enter(1, Slot(1), Mode::INSERT), Ok(()));
}
