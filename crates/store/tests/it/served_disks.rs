//! A store whose log is in the server, on a disk that is full or fails.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_io::fake::{EIO, ENOSPC, Effect, FakeFiles, Fault, Mood, Operation};
use holdfast_log::Log;
use holdfast_store::Durability::{self, Disk, Memory};
use holdfast_store::{CommitError, Direction, Store, TransactionError};

use crate::served::{CONFIG, Machine};

const KEYS: u32 = 100;
/// More than the log holds, in records of 700 bytes.
const PUTS: u32 = 2_000;

/// What a transaction was told instead of being committed as was asked.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// It was rolled back.
    Full,
    /// It is committed.
    NotDurable,
    Poisoned,
}

type Values = BTreeMap<u32, u8>;

/// A disk with a log.
fn disk() -> FakeFiles {
    let disk = FakeFiles::new(1);
    Log::create(&disk, [1; 16], &CONFIG).unwrap();
    disk
}

fn put(store: &Store, key: u32, value: u8, durability: Durability) -> Result<(), Told> {
    let Some(tree) = store.find_tree("keys").unwrap() else { panic!("it was made") };
    let mut one = store.begin();
    match one.put(&tree, &key.to_be_bytes(), &[value; 700]) {
        Err(TransactionError::Full(_)) => return Err(Told::Full),
        Err(TransactionError::Poisoned(_)) => return Err(Told::Poisoned),
        other => other.unwrap(),
    }
    match one.commit(durability) {
        Err(CommitError::NotDurable(_)) => Err(Told::NotDurable),
        Err(CommitError::Poisoned(_)) => Err(Told::Poisoned),
        other => other.map(drop).map_err(|error| panic!("{error:?}")),
    }
}

/// Gives every key this value.
fn fill(store: &Store, value: u8) -> Values {
    store.tree("keys").unwrap();
    (0..KEYS).for_each(|key| put(store, key, value, Disk).unwrap());
    (0..KEYS).map(|key| (key, value)).collect()
}

fn values(store: &Store) -> Values {
    let tree = store.find_tree("keys").unwrap().unwrap();
    let mut reading = store.begin();
    let scan = reading.scan::<&[u8]>(&tree, .., Direction::Up);
    let value = |(key, value): (Vec<u8>, Vec<u8>)| {
        assert!(value.len() == 700 && value.iter().all(|byte| *byte == value[0]), "it is whole");
        (u32::from_be_bytes(key.try_into().unwrap()), value[0])
    };
    scan.map(|found| value(found.unwrap())).collect()
}

/// Commits often, and notes what was committed. Returns how many were told to be not durable, or
/// that the log was full.
fn put_all(store: &Store, held: &mut Values, value: u8, durability: Durability) -> u32 {
    let mut refused = 0;
    for at in 0..PUTS {
        let told = put(store, at % KEYS, value, durability);
        if told != Err(Told::Full) {
            held.insert(at % KEYS, value);
        }
        refused += u32::from(told.is_err());
        assert_ne!(told, Err(Told::Poisoned), "a full disk is no failure");
    }
    refused
}

#[test]
fn a_full_disk_of_the_servers_is_no_failure_and_the_log_goes_on_with_the_files_it_has() {
    let (machine, disk) = (Machine::without_disk(), disk());
    let server = machine.serve_on(&disk);
    let store = machine.open();
    let mut held = fill(&store, 1);
    disk.set_capacity_bytes(Some(1));
    for (value, durability) in [(2, Disk), (3, Memory), (4, Disk)] {
        let refused = put_all(&store, &mut held, value, durability);
        assert!(refused < PUTS, "what is archived makes room");
        assert_eq!(values(&store), held, "reads go on");
    }
    disk.set_capacity_bytes(None);
    // Who waits while the server finds the disk full for the last time hears of that.
    let is_synced = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        store.sync().is_ok()
    });
    assert!(is_synced, "there is room");
    let found = |store: &Store| values(store) == held;
    assert!(found(&store));
    drop((store, server));
    machine.lose_memory();
    let _server = machine.serve_on(&disk.after_power_cut_in(Mood::LoseAll, 1));
    let store = machine.open();
    assert!(found(&store), "it was durable when `sync` returned");
    assert_eq!(fill(&store, 4), values(&store));
}

/// A disk that fails under the server's log, from the moment on that a commit needs it.
fn fail(machine: &Machine, disk: &FakeFiles, fault: Fault) {
    let server = machine.serve_on(disk);
    let store = machine.open();
    let mut held = fill(&store, 1);
    for key in 0..10 {
        put(&store, key, 2, Memory).unwrap();
        held.insert(key, 2);
    }
    // Whoever makes segments ready may meet the first ones, and that is no failure of the log.
    let is_told = (0..100).any(|_| {
        disk.fail(fault);
        put(&store, KEYS, 3, Disk) == Err(Told::Poisoned)
    });
    assert!(is_told, "{fault:?}");
    disk.forget_faults();
    let read = |store: &Store| {
        let mut found = values(store);
        found.remove(&KEYS);
        found
    };
    assert_eq!(put(&store, 0, 4, Memory), Err(Told::Poisoned), "from then on");
    assert!(store.sync().is_err());
    assert_eq!(read(&store), held, "what is in memory can be read");
    drop(store);
    // The server's memory has what was acknowledged from there.
    let store = machine.open();
    assert_eq!(read(&store), held);
    assert_eq!(put(&store, 0, 4, Disk), Err(Told::Poisoned), "the log is still the same");
    drop((store, server));
}

#[test]
fn a_disk_of_the_servers_that_fails_is_told_from_then_on_and_what_was_acknowledged_is_there() {
    for (operation, effect) in [
        (Operation::Write, Effect::Errno(EIO)),
        (Operation::Write, Effect::Errno(ENOSPC)),
        (Operation::SyncData, Effect::Errno(EIO)),
        (Operation::SyncData, Effect::Errno(ENOSPC)),
        (Operation::SyncData, Effect::DropsDirty),
    ] {
        let (machine, disk) = (Machine::without_disk(), disk());
        fail(&machine, &disk, Fault { operation, skip: 0, effect });
        machine.lose_memory();
        let _server = machine.serve_on(&disk.after_power_cut_in(Mood::LoseAll, 1));
        let store = machine.open();
        let found = values(&store);
        assert!((10..KEYS).all(|key| found[&key] == 1), "{operation:?} {effect:?}: {found:?}");
        // Of those that the memory alone had: a prefix.
        let changed: Vec<bool> = (0..10).map(|key| found[&key] == 2).collect();
        assert!(changed.is_sorted_by(|one, next| one >= next), "{operation:?}: {found:?}");
        assert!((0..10).all(|key| changed[key as usize] || found[&key] == 1), "{found:?}");
        let (held, found) = (fill(&store, 5), values(&store));
        assert!(held.iter().all(|(key, value)| found[key] == *value));
    }
}
