//! Transactions of several threads happened one after the other, and each snapshot between two of
//! them.
//!
//! Promise: a history is accepted only if every reading in it is what the transactions before it
//! come to, in the order in which the store says that they happened; every reading by a snapshot
//! what those come to that happened up to its place; and no snapshot stands before a commit that
//! had returned when it was asked for.
//! Never: looks for an order: strict two-phase locks make that of the commits the one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_io::fake::Random;
use holdfast_pages::Rsn;
use holdfast_store::{
    CommitError, Config, Direction, Durability, Services, Store, Transaction, TransactionError,
    Tree,
};

use crate::support::{config, factor, machine, place};

const THREADS: u64 = 4;
const KEYS: u64 = 24;
/// Values so long that a leaf has few, and splits are many.
const VALUE_BYTES: usize = 900;

/// What one transaction saw or did.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Read { key: u64, found: Option<u64> },
    Scanned { keys: Range<u64>, found: Vec<(u64, u64)> },
    Put { key: u64, value: u64 },
    Deleted { key: u64, was_there: bool },
}

/// A transaction that was committed.
#[derive(Clone, Debug)]
struct Happened {
    at: Rsn,
    events: Vec<Event>,
}

/// What was read by a snapshot.
#[derive(Clone, Debug)]
struct Looked {
    at: Rsn,
    /// Up to where commits had returned before it was asked for.
    returned: Rsn,
    events: Vec<Event>,
}

/// What the threads of a store did.
#[derive(Clone, Debug, Default)]
struct History {
    happened: Vec<Happened>,
    looked: Vec<Looked>,
}

/// What went wrong first.
#[derive(Clone, Debug)]
#[allow(dead_code)]
enum Wrong {
    Happened(Vec<Happened>),
    Looked(Looked),
}

fn name(key: u64) -> Vec<u8> {
    format!("{key:04}").into_bytes()
}

fn number(key: &[u8]) -> u64 {
    std::str::from_utf8(key).unwrap().parse().unwrap()
}

fn long(value: u64) -> Vec<u8> {
    let mut bytes = vec![0; VALUE_BYTES];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    bytes
}

fn short(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// One thing that a transaction does.
fn any_event(
    transaction: &mut Transaction<'_>,
    tree: &Tree,
    random: &mut Random,
) -> Result<Event, TransactionError> {
    let key = random.below(KEYS);
    Ok(match random.below(10) {
        0..3 => {
            let found = transaction.get(tree, &name(key))?;
            Event::Read { key, found: found.as_deref().map(short) }
        }
        3..5 => scanned(transaction, tree, key..key + random.below(6), random)?,
        5..8 => {
            let value = random.any();
            transaction.put(tree, &name(key), &long(value))?;
            Event::Put { key, value }
        }
        _ => Event::Deleted { key, was_there: transaction.delete(tree, &name(key))? },
    })
}

fn scanned(
    transaction: &mut Transaction<'_>,
    tree: &Tree,
    keys: Range<u64>,
    random: &mut Random,
) -> Result<Event, TransactionError> {
    let direction = if random.chance(50) { Direction::Up } else { Direction::Down };
    let scan = transaction.scan(tree, name(keys.start)..name(keys.end), direction);
    let found = scan.map(|entry| entry.map(|(key, value)| (number(&key), short(&value))));
    let mut found = found.collect::<Result<Vec<_>, _>>()?;
    found.sort_unstable();
    Ok(Event::Scanned { keys, found })
}

/// One transaction, unless it is the victim of a deadlock.
fn run(store: &Store, tree: &Tree, random: &mut Random) -> Option<Happened> {
    let is_redo_only = random.chance(30);
    let mut transaction = if is_redo_only { store.begin_redo_only() } else { store.begin() };
    let mut events = Vec::new();
    for _ in 0..1 + random.below(5) {
        match any_event(&mut transaction, tree, random) {
            Ok(event) => events.push(event),
            Err(TransactionError::Deadlock(_)) => return None,
            Err(error) => panic!("{error}"),
        }
    }
    if random.chance(10) {
        transaction.abort().unwrap();
        return None;
    }
    let durability = if random.chance(20) { Durability::Disk } else { Durability::Memory };
    let at = match transaction.commit(durability) {
        Err(CommitError::NotDone(TransactionError::Deadlock(_))) if is_redo_only => return None,
        committed => committed.unwrap().at,
    };
    Some(Happened { at, events })
}

/// Looks at a snapshot now and then.
fn look(store: &Store, tree: &Tree, random: &mut Random, returned: &AtomicU64) -> Looked {
    let returned = Rsn(returned.load(Ordering::Acquire));
    let snapshot = store.snapshot().unwrap();
    let mut events = Vec::new();
    for _ in 0..1 + random.below(12) {
        let key = random.below(KEYS);
        if random.chance(50) {
            let found = snapshot.get(tree, &name(key)).unwrap();
            events.push(Event::Read { key, found: found.as_deref().map(short) });
        } else {
            let keys = key..key + random.below(12);
            let direction = if random.chance(50) { Direction::Up } else { Direction::Down };
            let scan = snapshot.scan(tree, name(keys.start)..name(keys.end), direction);
            let found = scan.map(|entry| entry.map(|(key, value)| (number(&key), short(&value))));
            let mut found = found.collect::<Result<Vec<_>, _>>().unwrap();
            found.sort_unstable();
            events.push(Event::Scanned { keys, found });
        }
        if random.chance(40) {
            std::thread::yield_now();
        }
    }
    Looked { at: snapshot.at(), returned, events }
}

/// What the threads did with a new store.
fn history(seed: u64, transactions: u64) -> History {
    let files = machine(seed);
    let config = Config { services: Services::Threads, checkpoint_ms: Some(1), ..config() };
    let (store, _) = Store::open_at(place(&files), &config).unwrap();
    let (tree, begin) = (store.tree("history").unwrap(), Barrier::new(THREADS as usize + 1));
    let (returned, running) = (AtomicU64::new(0), AtomicU64::new(THREADS));
    let (store, tree, begin, returned, running) = (&store, &tree, &begin, &returned, &running);
    let thread = move |number: u64| {
        let (mut random, mut history) = (Random::new(seed ^ (number << 32)), History::default());
        begin.wait();
        for _ in 0..transactions {
            if random.chance(8) {
                history.looked.push(look(store, tree, &mut random, returned));
            } else if let Some(happened) = run(store, tree, &mut random) {
                returned.fetch_max(happened.at.get(), Ordering::AcqRel);
                history.happened.push(happened);
            }
        }
        running.fetch_sub(1, Ordering::Relaxed);
        history
    };
    let looks = move || {
        let mut random = Random::new(seed ^ (THREADS << 32));
        begin.wait();
        let mut looked = vec![look(store, tree, &mut random, returned)];
        while running.load(Ordering::Relaxed) > 0 {
            looked.push(look(store, tree, &mut random, returned));
        }
        looked
    };
    std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|number| scope.spawn(move || thread(number)));
        let mut history = History { happened: vec![], looked: looks() };
        for thread in threads {
            let History { happened, looked } = thread.join().unwrap();
            history.happened.extend(happened);
            history.looked.extend(looked);
        }
        history
    })
}

/// The first transactions that did not see what those before them came to, or the first snapshot.
fn first_wrong(history: History) -> Option<Wrong> {
    let History { mut happened, mut looked } = history;
    happened.sort_by_key(|happened| happened.at);
    looked.sort_by_key(|looked| looked.at);
    let (mut held, mut looked) = (BTreeMap::new(), looked.into_iter().peekable());
    for same_place in happened.chunk_by(|one, other| one.at == other.at) {
        while let Some(looked) = looked.next_if(|looked| looked.at < same_place[0].at) {
            if !shows(&held, &looked) {
                return Some(Wrong::Looked(looked));
            }
        }
        match after_all(&held, same_place) {
            Some(after) => held = after,
            None => return Some(Wrong::Happened(same_place.to_vec())),
        }
    }
    looked.find(|looked| !shows(&held, looked)).map(Wrong::Looked)
}

/// Whether a snapshot showed what there was at its place, and stands late enough.
fn shows(held: &BTreeMap<u64, u64>, looked: &Looked) -> bool {
    let mut held = held.clone();
    looked.at >= looked.returned && looked.events.iter().all(|event| fits(&mut held, event))
}

/// What there is after transactions that happened at the same place: one of them first, and after
/// it those that have changed nothing in the end.
fn after_all(held: &BTreeMap<u64, u64>, same_place: &[Happened]) -> Option<BTreeMap<u64, u64>> {
    same_place.iter().find_map(|first| {
        let now = after(held, first)?;
        same_place
            .iter()
            .all(|other| std::ptr::eq(other, first) || after(&now, other).as_ref() == Some(&now))
            .then_some(now)
    })
}

/// What there is after a transaction, if it can have happened then.
fn after(held: &BTreeMap<u64, u64>, happened: &Happened) -> Option<BTreeMap<u64, u64>> {
    let mut held = held.clone();
    happened.events.iter().all(|event| fits(&mut held, event)).then_some(held)
}

/// Whether an event is what should have happened then; makes its change.
fn fits(held: &mut BTreeMap<u64, u64>, event: &Event) -> bool {
    match event {
        Event::Read { key, found } => held.get(key) == found.as_ref(),
        Event::Scanned { keys, found } => {
            held.range(keys.clone()).map(|(key, value)| (*key, *value)).eq(found.iter().copied())
        }
        Event::Put { key, value } => {
            held.insert(*key, *value);
            true
        }
        Event::Deleted { key, was_there } => held.remove(key).is_some() == *was_there,
    }
}

#[test]
fn transactions_of_threads_happen_one_after_the_other() {
    let (mut committed, mut looked) = (0, 0);
    for seed in 1..=60 * factor() {
        let history = history(seed, 250);
        let count = history.happened.len();
        assert!(count > 500, "seed {seed}: only {count} were committed");
        assert!(history.looked.len() > 20, "seed {seed}: hardly anybody looked");
        (committed, looked) = (committed + count, looked + history.looked.len());
        let wrong = first_wrong(history);
        assert!(wrong.is_none(), "seed {seed} (and the machine's mood): {wrong:?}");
    }
    println!("{committed} transactions committed, {looked} snapshots looked at");
}

#[test]
fn a_reading_of_what_was_not_there_would_be_noticed() {
    let mut history = history(1, 100);
    assert!(first_wrong(history.clone()).is_none());
    let last = history.happened.iter_mut().max_by_key(|happened| happened.at).unwrap();
    last.events.push(Event::Read { key: KEYS, found: Some(1) });
    assert!(first_wrong(history).is_some());
}

#[test]
fn a_phantom_would_be_noticed() {
    let happened = |at, events| Happened { at: Rsn(at), events };
    let scan = |found| Event::Scanned { keys: 1..9, found };
    let happened = vec![
        happened(10, vec![Event::Put { key: 5, value: 1 }]),
        happened(20, vec![scan(vec![]), scan(vec![])]),
    ];
    assert!(first_wrong(History { happened, looked: vec![] }).is_some());
}

#[test]
fn a_snapshot_of_another_moment_would_be_noticed() {
    let happened = |at, value| Happened { at: Rsn(at), events: vec![Event::Put { key: 5, value }] };
    let happened = vec![happened(10, 1), happened(20, 2), happened(30, 3)];
    let wrong = |at, returned, found| {
        let events = vec![Event::Read { key: 5, found }];
        let looked = vec![Looked { at: Rsn(at), returned: Rsn(returned), events }];
        first_wrong(History { happened: happened.clone(), looked }).is_some()
    };
    // What it should be, what was not there yet, what was there before, and one that came too late.
    assert!(!wrong(20, 20, Some(2)) && !wrong(29, 20, Some(2)) && !wrong(9, 0, None));
    assert!(wrong(20, 20, Some(3)) && wrong(20, 20, Some(1)) && wrong(20, 30, Some(2)));
    assert!(wrong(30, 0, Some(2)) && wrong(9, 0, Some(1)));
}

#[test]
fn a_reading_by_a_snapshot_that_is_tampered_with_would_be_noticed() {
    let history = history(2, 100);
    assert!(first_wrong(history.clone()).is_none());
    let (mut tampered, mut noticed) = (0, 0);
    for (at, looked) in history.looked.iter().enumerate() {
        for (event, read) in looked.events.iter().enumerate() {
            let Event::Read { key, found } = *read else { continue };
            let mut history = history.clone();
            let found = Some(found.unwrap_or(0) ^ 1);
            history.looked[at].events[event] = Event::Read { key, found };
            tampered += 1;
            noticed += usize::from(first_wrong(history).is_some());
        }
        if tampered > 20 {
            break;
        }
    }
    assert!(tampered > 0 && noticed == tampered, "{noticed} of {tampered}");
}
