//! A process that logs is killed at moments of chance; on a real disk.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use holdfast_io::fake::Random;
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Background, Log};

use crate::support::{SMALL, Work, factor, records, work};

/// The directory that a child is told to log in.
const DIRECTORY: &str = "HOLDFAST_WAL_KILLED_IN";
const RECORDS_A_SET: u32 = 3;

fn opened(directory: &Path) -> Log<Work, MessagePack> {
    let options = SMALL.with_background(Background::DrainAndPrepare);
    Log::open_or_create(directory, &options).expect("the log opens after any kill").0
}

/// What the child does: goes on where the log ends, and says of each set that it was waited for.
#[test]
fn a_child_logs_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let log = opened(directory.as_ref());
    let mut next = records(&log).expect("whole").len() as u32;
    let mut out = std::io::stdout();
    loop {
        let set: Vec<_> = (next..next + RECORDS_A_SET).map(work).collect();
        log.append_all(&set).unwrap().wait().unwrap();
        next += RECORDS_A_SET;
        // A checkpoint would hide the beginning; space comes from the directory's own disk.
        writeln!(out, "waited for {next}").unwrap();
    }
}

fn child(directory: &Path, job: &str) -> Child {
    let test = std::env::current_exe().expect("a test runs");
    Command::new(test)
        .args(["--exact", &format!("kills::{job}"), "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test starts a second time")
}

/// The numbers that the child said behind these words, once it is dead.
fn said(child: &mut Child, words: &str) -> Vec<u64> {
    let said = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let number = |line: String| line.rsplit_once(words)?.1.parse().ok();
    said.map_while(Result::ok).filter_map(number).collect()
}

#[test]
fn nothing_that_was_waited_for_is_lost_when_the_process_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let seed = 1;
    let mut random = Random::new(seed);
    let mut waited_for = 0;
    for kill in 0..10 * factor() {
        let mut child = child(directory.path(), "a_child_logs_until_it_is_killed");
        std::thread::sleep(Duration::from_millis(20 + random.below(150)));
        child.kill().unwrap();
        let last = said(&mut child, "waited for ").pop().unwrap_or(0) as u32;
        waited_for = last.max(waited_for);
        child.wait().unwrap();
        let found = records(&opened(directory.path())).unwrap();
        assert!(found.len() as u32 >= waited_for, "kill {kill} of seed {seed}");
        assert!((found.len() as u32).is_multiple_of(RECORDS_A_SET), "half a set");
        assert!(found.iter().zip(0..).all(|(found, id)| *found == work(id)));
    }
    println!("{waited_for} records waited for, none lost");
    assert!(waited_for > 0);
}

/// How many threads checkpoint at once.
const THREADS: u32 = 4;

/// What the child does: its threads append, and checkpoint what they appended, and say so when that
/// has returned.
#[test]
fn a_child_checkpoints_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let log = &opened(directory.as_ref());
    std::thread::scope(|scope| {
        let spawn = |thread| drop(scope.spawn(move || checkpoint_for_ever(log, thread)));
        (0..THREADS).for_each(spawn);
    });
}

fn checkpoint_for_ever(log: &Log<Work, MessagePack>, thread: u32) {
    let mut random = Random::new(u64::from(std::process::id() ^ (thread << 24)));
    let mut out = std::io::stdout();
    loop {
        let ticket = log.append(&work(thread)).unwrap();
        if random.chance(40) {
            log.checkpoint(ticket.end()).unwrap();
            writeln!(out, "checkpoint {}", ticket.end()).unwrap();
        }
    }
}

#[test]
fn a_checkpoint_that_returned_to_one_of_several_threads_outlives_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let seed = 1;
    let mut random = Random::new(seed);
    let (mut made, mut highest) = (0, 0);
    for kill in 0..10 * factor() {
        let mut child = child(directory.path(), "a_child_checkpoints_until_it_is_killed");
        std::thread::sleep(Duration::from_millis(20 + random.below(150)));
        child.kill().unwrap();
        let told = said(&mut child, "checkpoint ");
        child.wait().unwrap();
        made += told.len();
        highest = told.into_iter().max().unwrap_or(0).max(highest);
        let log = opened(directory.path());
        let found = log.stat().checkpoint.get();
        assert!(found >= highest, "kill {kill} of seed {seed}: told {highest}, found {found}");
        records(&log).unwrap_or_else(|error| panic!("kill {kill} of seed {seed}: {error}"));
    }
    println!("{made} checkpoints of {THREADS} threads returned, none of them was lost by a kill");
    assert!(made > 0);
}
