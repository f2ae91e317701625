//! A process that has a store is killed at moments of chance; on a real disk, with a ring that
//! outlives it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use holdfast_io::fake::Random;
use holdfast_memory::Medium;
use holdfast_store::{Config, Direction, Durability, LogPlace, Services, Store, Tree};

use crate::{served, support};

/// The directory that a child is told to keep a store in.
const DIRECTORY: &str = "HOLDFAST_STORE_KILLED_IN";
/// Keys whose value is how many transactions there were. What changes them all has more to undo
/// than the log's ring has room for.
const COUNTERS: u64 = 300;

/// What a child says whose snapshots are wrong.
const SNAPSHOT_WRONG: &str = "a snapshot is wrong:";

/// Where a server listens, if the log of the store in a directory is to be in one.
pub(crate) const SOCKET: &str = "socket";

/// Where the log is.
fn log_of(directory: &Path) -> LogPlace {
    let socket = directory.join(SOCKET);
    if socket.exists() {
        return LogPlace::Served { socket, name: served::NAME.to_owned() };
    }
    LogPlace::Embedded {
        memory: Medium::File { path: directory.join("ring") },
        ring_bytes: 256 << 10,
        segment_bytes: 64 << 10,
    }
}

pub(crate) fn opened(directory: &Path) -> (Store, Tree, Tree) {
    let config = Config {
        log: log_of(directory),
        checkpoint_ms: Some(1),
        services: Services::Threads,
        ..support::config()
    };
    let (store, _) =
        Store::open(&directory.join("store"), &config).expect("it opens after any kill");
    let [counters, history] = ["counters", "history"].map(|name| store.tree(name).expect("a tree"));
    (store, counters, history)
}

/// How many transactions there were, if the store has them whole.
pub(crate) fn count(store: &Store, counters: &Tree, history: &Tree) -> u64 {
    let mut reading = store.begin();
    let numbers = |tree: &Tree, reading: &mut holdfast_store::Transaction<'_>| {
        let scan = reading.scan::<&[u8]>(tree, .., Direction::Up);
        scan.map(|found| found.expect("pages")).collect::<Vec<_>>()
    };
    let history = numbers(history, &mut reading);
    let of = |bytes: &[u8]| u64::from_be_bytes(bytes[..8].try_into().expect("a number"));
    assert!(history.iter().map(|(key, _)| of(key)).eq(0..history.len() as u64), "a hole");
    for (key, value) in numbers(counters, &mut reading) {
        assert_eq!(of(&value), history.len() as u64, "counter {key:?}");
    }
    history.len() as u64
}

/// What the child does: counts on, and says of each transaction that it was committed.
#[test]
fn a_child_counts_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let (store, counters, history) = opened(directory.as_ref());
    let (next, mut out) = (count(&store, &counters, &history), std::io::stdout());
    std::thread::scope(|threads| {
        threads.spawn(|| look_until_killed(&store, &counters, &history));
        count_on(&store, &counters, &history, next, &mut out);
    });
}

/// Compares all trees as snapshots show them, and says so if they do not agree.
fn look_until_killed(store: &Store, counters: &Tree, history: &Tree) {
    let mut before = 0;
    loop {
        let snapshot = store.snapshot().expect("a log");
        let all = |tree| snapshot.scan::<&[u8]>(tree, .., Direction::Up).collect::<Vec<_>>();
        let of = |bytes: &[u8]| u64::from_be_bytes(bytes[..8].try_into().expect("a number"));
        let of_counters = all(counters);
        let transactions = all(history).len() as u64;
        let agrees = of_counters
            .iter()
            .all(|found| found.as_ref().is_ok_and(|(_, value)| of(value) == transactions));
        if !agrees || transactions < before {
            println!("{SNAPSHOT_WRONG} {before} {transactions} {of_counters:?}");
        }
        before = transactions;
    }
}

fn count_on(store: &Store, counters: &Tree, history: &Tree, next: u64, out: &mut impl Write) {
    for number in next.. {
        let mut one = store.begin();
        for counter in 0..COUNTERS {
            let mut value = vec![7; 500];
            value[..8].copy_from_slice(&(number + 1).to_be_bytes());
            one.put(counters, &counter.to_be_bytes(), &value).expect("room");
        }
        assert!(one.insert(history, &number.to_be_bytes(), b"").expect("room"));
        let durability = if number % 4 == 0 { Durability::Disk } else { Durability::Memory };
        one.commit(durability).expect("a log");
        writeln!(out, "committed {}", number + 1).expect("somebody listens");
    }
}

pub(crate) fn child(directory: &Path) -> Child {
    let test = std::env::current_exe().expect("a test runs");
    Command::new(test)
        .args(["--exact", "kills::a_child_counts_until_it_is_killed", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test starts a second time")
}

/// The numbers that the child says.
fn said(child: &mut Child) -> impl Iterator<Item = u64> + use<> {
    let said = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    said.map_while(Result::ok).filter_map(|line| {
        assert!(!line.contains(SNAPSHOT_WRONG), "{line}");
        line.rsplit_once("committed ").and_then(|(_, number)| number.parse().ok())
    })
}

/// The last of them, once it is dead.
pub(crate) fn last_said(child: &mut Child) -> u64 {
    said(child).last().unwrap_or(0)
}

#[test]
fn nothing_that_was_committed_is_lost_when_the_process_is_killed() {
    let directory = tempfile::tempdir().expect("a directory");
    let seed = 1;
    let mut random = Random::new(seed);
    let mut committed = 0;
    for kill in 0..10 * support::factor() {
        let mut child = child(directory.path());
        let mut said = said(&mut child);
        // Every second one comes to commit something, however slow the machine is.
        let first = (kill % 2 == 1).then(|| said.next().expect("it commits something"));
        std::thread::sleep(Duration::from_millis(20 + random.below(200)));
        child.kill().expect("it runs");
        committed = said.last().or(first).unwrap_or(0).max(committed);
        child.wait().expect("it is dead");
        let (store, counters, history) = opened(directory.path());
        let found = count(&store, &counters, &history);
        assert!(found >= committed, "kill {kill} of seed {seed}: {found} of {committed}");
    }
    println!("{committed} transactions committed, none lost");
    assert!(committed > 0);
}
